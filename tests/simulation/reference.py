"""The gate, told a second time and one message after the other: behaviour.md, sections 0 to 2, for what is built.

Written from the document, not from the pipeline's policies. It is asked in the order in which decisions took effect,
and answers which ends are right; usually one.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from shared.message import Message

End: TypeAlias = tuple[str, str]
"""Disposition and reason; ("on", reason) where the message goes on."""

NEGATIVE: Final = (
    "少说点", "少说两句", "别说了", "别再说", "闭嘴", "住口", "安静点", "别吵", "吵死了", "烦死了", "别插嘴",
    "没人问你", "shut up", "be quiet", "stop talking",
)  # fmt: skip
PIERCING: Final = ("紧急", "救命", "故障", "崩溃", "求助", "帮帮我")
KEYWORDS: Final = (*PIERCING, "坏掉", "坏了", "报错", "出错", "help", "urgent", "error", "bug")
MINUTE_MS: Final = 60_000
COMMANDS: Final = ("help", "new", "status", "stop")


@dataclass
class Gate:
    """Everything that the rules remember. `accounts`: their configuration as written; `lane_max`: the pipeline's."""

    accounts: Mapping[str, Mapping[str, Any]]
    lane_max: int
    claims: dict[tuple[str, str], tuple[str, tuple[str, ...]]] = field(default_factory=dict[Any, Any])
    bots: dict[tuple[str, ...], int] = field(default_factory=lambda: defaultdict(int))
    cooling: dict[tuple[str, str], int] = field(default_factory=dict[Any, Any])
    allowed: dict[tuple[str, str], list[int]] = field(default_factory=lambda: defaultdict(list))
    owner_spoke: dict[tuple[str, str], int] = field(default_factory=dict[Any, Any])
    slots: dict[tuple[str, str], str] = field(default_factory=dict[Any, Any])
    waiting: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def role(self, m: Message) -> str:
        """The sender's role."""
        rules = self.accounts[m.account]
        if m.sender_id in rules["blocked"]:
            return "blocked"
        if m.sender_id in rules["owners"]:
            return "owner"
        if m.system:
            return "system"
        return "member" if m.sender_id in rules["members"] else "guest"

    def admission(self, id_: str, m: Message, at_ms: int, read_only: bool, given_back: int) -> set[End]:
        """Steps 0 to 6. `given_back`: turns that the bots of this chat were given back since the decision was made."""
        rules, role = self.accounts[m.account], self.role(m)
        if m.sender_id == rules["self_id"]:
            return {("ignored", "echo")}
        if not m.text.strip() and not m.attachments and m.reply_to is None:
            return {("ignored", "empty")}
        looping: set[End] = set()
        if m.sender_is_bot and not m.system:
            if not rules.get("answer_bots"):
                return {("ignored", "bot")}
            if self.bots[run_of(m)] >= rules["bot_turns"]:
                return {("ignored", "bot.loop")}
            if self.bots[run_of(m)] + given_back >= rules["bot_turns"]:
                looping = {("ignored", "bot.loop")}
        stale_ms = rules.get("stale_after_s", 0) * 1000
        if stale_ms and m.sent_at_ms is not None and at_ms - m.sent_at_ms > stale_ms:
            return looping | {("ignored", "stale")}
        hits = [held for key in m.keys if (held := self.claims.get((m.account, key))) and held[0] != id_]
        if hits:
            same = any(held[1] == identity(m) for held in hits)
            return looping | {("duplicate", "duplicate") if same else ("conflict", "conflict")}
        if not self._admits(role, m):
            return looping | {("denied", "access")}
        if read_only and m.channel != "mock":
            return looping | {("skipped", "read-only-mode")}
        name = None if role == "system" else self._command(m)
        if name is None:
            return looping | {("on", "")}
        trusted = role in ("owner", "member")
        if name == "new" and m.chat_type == "group" and not trusted:
            return looping | {("denied", "command")}
        if name == "stop" and not trusted and m.chat_type == "group":
            # It hangs on whose turn runs, which may have changed since the decision was made.
            return looping | {("command", "command"), ("denied", "command")}
        return looping | {("command", "command")}

    def admitted(self, id_: str, m: Message, end: End) -> None:
        """Admission's decision took effect."""
        early = ("echo", "empty", "bot", "stale")
        if end[0] in ("conflict", "dead") or (end[0] == "ignored" and end[1] in early):
            return
        for key in m.keys:
            self.claims.setdefault((m.account, key), (id_, identity(m)))
        if end[0] in ("duplicate", "ignored"):
            return
        if m.sender_is_bot and not m.system:
            self.bots[run_of(m)] += end[0] in ("on", "command")
        elif not m.system:
            self.bots[run_of(m)] = 0

    def engagement(self, id_: str, m: Message, at_ms: int, lane: str, freed: tuple[int, bool]) -> set[End]:
        """Steps 8 and 9. `freed`: turns that the lane has lost, and whether the guest's slot was freed, since the
        decision was made."""
        end = self._gate(m, at_ms)
        if end[0] != "on":
            return {end}
        if len(self.waiting[lane]) >= self.lane_max:
            return {("throttled", "lane.full")}
        ends = {("throttled", "lane.full")} if len(self.waiting[lane]) + freed[0] >= self.lane_max else set[End]()
        if self.role(m) == "guest":
            if self.slots.get((m.account, m.sender_id), id_) != id_:
                return ends | {("throttled", "flow.busy")}
            ends |= {("throttled", "flow.busy")} if freed[1] else set[End]()
        return ends | {end}

    def engaged(self, id_: str, m: Message, at_ms: int, lane: str, end: End) -> None:
        """Engagement's decision took effect."""
        chat, sender = (m.account, m.chat_id), (m.account, m.sender_id)
        if end == ("silenced", "cooldown.entered"):
            self.cooling[chat] = at_ms + self.accounts[m.account]["engagement"]["cooldown_s"] * 1000
        if end[0] == "on":
            self.waiting[lane].add(id_)
            if self.role(m) == "guest":
                self.slots[sender] = id_
            if end[1] == "private":
                self.allowed[sender].append(at_ms)
            if end[1] == "owner.all":
                self.owner_spoke[chat] = at_ms
        elif m.sender_is_bot and not m.system and end[0] != "dead":
            self.bots[run_of(m)] -= 1

    def _admits(self, role: str, m: Message) -> bool:
        rules = self.accounts[m.account]
        mode = rules.get("direct", "open") if m.chat_type == "private" else rules.get("groups", "open")
        if role == "blocked" or mode == "off":
            return False
        if role == "owner" or mode == "open":
            return True
        return m.chat_id in rules["listed_groups"] if mode == "listed" else mode == "members" and role == "member"

    def _command(self, m: Message) -> str | None:
        found = re.fullmatch(r"/(\w+)(@\w+)?", m.text.strip())
        if found is None or found[1] not in COMMANDS:
            return None
        if found[2] is not None:
            return found[1] if found[2] == f"@{self.accounts[m.account]['self_id']}" else None
        return found[1] if m.chat_type == "private" or self._addressed(m) else None

    def _addressed(self, m: Message) -> bool:
        return m.addressed or m.mentions_all or self.accounts[m.account]["self_id"] in m.mentions

    def _gate(self, m: Message, at_ms: int) -> End:
        rules, role = self.accounts[m.account], self.role(m)
        chat, sender = (m.account, m.chat_id), (m.account, m.sender_id)
        private = m.chat_type == "private"
        if role == "owner":
            if private or self._addressed(m):
                return "on", "owner.private" if private else "owner.addressed"
            last = self.owner_spoke.get(chat)
            wait_ms = rules.get("owner_min_interval_s", 0) * 1000
            every = rules.get("owner_group_mode") == "all"
            if every and (last is None or at_ms - last >= wait_ms):
                return "on", "owner.all"
            return "silenced", "owner.unaddressed"
        if role == "system":
            return "silenced", "system"
        if private:
            recent = [t for t in self.allowed[sender] if t > at_ms - MINUTE_MS]
            return ("throttled", "flow.rate") if len(recent) >= rules["direct_per_minute"] else ("on", "private")
        if has(NEGATIVE, m.text):
            return "silenced", "cooldown.entered"
        owner = rules.get("owner_name")
        rule = (
            "rule.addressed" if self._addressed(m)
            else "rule.owner_name" if owner and owner in m.text
            else "rule.keyword" if has(KEYWORDS, m.text)
            else None
        )  # fmt: skip
        if at_ms < self.cooling.get(chat, 0):
            return ("on", "cooldown.pierced") if has(PIERCING, m.text) else ("silenced", "cooldown.active")
        return ("on", rule) if rule else ("silenced", "no_signal")


def has(words: Iterable[str], text: str) -> bool:
    """Whether one of `words` stands in `text`, whatever the case."""
    return any(word in text.lower() for word in words)


def identity(m: Message) -> tuple[str, ...]:
    """What a second event under the same key must equal to be a copy."""
    return m.text, m.kind, m.sender_id, m.chat_id


def run_of(m: Message) -> tuple[str, ...]:
    """The conversation in which bots are counted."""
    return m.account, m.chat_id, m.thread_id or ""
