"""Engagement: which messages become turns. Pure: facts in, an outcome and intents out (behaviour.md, sections 1 and 2).

Listen-only accounts first, then the gate, then what a turn needs: room in its lane and, for a guest, the turn slot. A
batch is folded in ticket order as in admission. A World belongs to one account; windows go by `received_at_ms`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from shared.admission import Reply, Warn, bot_run_of
from shared.envelope import Envelope
from shared.message import Message
from shared.outcome import Finish, Forward, Outcome
from shared.settings import AccountSettings
from shared.settings_accounts import Role
from workers.engagement.gate import GateFacts, gate

TOLD_EVERY_MS: Final = 60_000
"""A sender whose messages find the lane full is told once a minute (behaviour.md, section 1, Full lane)."""

_NAMELESS: Final = "未署名发送者"
_GUEST_TURNS: Final = 1
"""Turns that a guest may have running on an account (behaviour.md, section 2, Turn slot)."""


@dataclass(frozen=True, slots=True)
class Item:
    """One message of the batch. `role` is admission's; `account` is as overlay and routes leave it for this message.
    verdict: what the judge said (`failed`, `respond`), None before it was asked."""

    envelope: Envelope
    ticket: int
    lane: str
    role: Role
    account: AccountSettings
    verdict: Mapping[str, bool] | None = None


@dataclass(frozen=True, slots=True)
class World:
    """What engagement knows of one account. A key that a mapping lacks has nothing.

    lane_max: `pipeline.lane_max`. judge: a judge is configured. read_only: the switch; nothing is registered then.
    cooldowns: by chat_id, until when. flow: by sender_id, when the allowed direct messages of the last 60 s came.
    owner_spoke: by chat_id, the last `owner.all`. busy_guests: by sender_id, the envelope id that holds the turn slot.
    lanes: by lane, turns that wait, the running one not counted. full_told: by (lane, sender_id), the last notice.
    """

    lane_max: int
    judge: bool = False
    read_only: bool = False
    cooldowns: Mapping[str, int] = field(default_factory=dict[str, int])
    flow: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    owner_spoke: Mapping[str, int] = field(default_factory=dict[str, int])
    busy_guests: Mapping[str, str] = field(default_factory=dict[str, str])
    lanes: Mapping[str, int] = field(default_factory=dict[str, int])
    full_told: Mapping[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])


@dataclass(frozen=True, slots=True)
class Register:
    """Add one row to the conversation's log: role user, this text, no attachments, no turn id. `label` names the
    sender, empty for the owner; `at_ms` is when the message was received."""

    text: str
    label: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class Cooldown:
    """The group's COOLDOWN lasts until `until_ms`, whatever it was before."""

    chat_id: str
    until_ms: int


@dataclass(frozen=True, slots=True)
class FlowHit:
    """One allowed direct message of this sender."""

    sender_id: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class OwnerSpoke:
    """The owner was answered without addressing her: `owner_min_interval_s` starts."""

    chat_id: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class TakeSlot:
    """The guest's turn slot on this account now names this envelope."""

    sender_id: str


@dataclass(frozen=True, slots=True)
class ToldFull:
    """The sender was told that this lane is full."""

    lane: str
    sender_id: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class GiveBackBotTurn:
    """A bot's message became no turn: lower the run's count by one, not below 0 (`bot_turns` limits turns)."""

    run: str


Intent: TypeAlias = Register | Cooldown | FlowHit | OwnerSpoke | TakeSlot | ToldFull | GiveBackBotTurn | Reply | Warn


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of a message, and what to write with it in the same move."""

    outcome: Outcome
    intents: tuple[Intent, ...] = ()


def decide(item: Item, world: World) -> Decision:
    """Decide one message. `Forward("quotes", reason)` makes a turn; the reason is the gate's."""
    message, account, at_ms = item.envelope.message, item.account, item.envelope.received_at_ms
    if account.send_mode == "off":
        return _no_turn(item, world, Finish("skipped", "send-off"))
    facts = GateFacts(
        judge=world.judge,
        cooldown_until_ms=world.cooldowns.get(message.chat_id),
        allowed_ms=world.flow.get(message.sender_id, ()),
        owner_spoke_ms=world.owner_spoke.get(message.chat_id),
    )
    ruling = gate(message, item.role, account, at_ms, facts)
    verdict = item.verdict or {}
    match ruling.kind:
        case "judge" if item.verdict is None:
            return Decision(Forward("judge"))
        case "judge" if verdict.get("failed"):
            warning = Warn("judge_failed", {"channel": message.channel, "account": message.account})
            return _no_turn(item, world, Finish("silenced", "judge.failed"), warning)
        case "judge" if verdict.get("respond"):
            return _turn(item, world, "judge.respond")
        case "judge":
            return _no_turn(item, world, Finish("silenced", "judge.declined"))
        case "throttled":
            return _throttled(item, world, ruling.reason, account.direct_per_minute)
        case "respond":
            return _turn(item, world, ruling.reason)
        case "silent":
            entered = ruling.reason == "cooldown.entered"
            until_ms = at_ms + int(account.engagement.cooldown_s * 1000)
            cooling = (Cooldown(message.chat_id, until_ms),) if entered else ()
            return _no_turn(item, world, Finish("silenced", ruling.reason), *cooling)


def after(world: World, item: Item, decision: Decision) -> World:
    """The world that the next message of the batch sees."""
    for intent in decision.intents:
        match intent:
            case Cooldown(chat_id, until_ms):
                world = replace(world, cooldowns={**world.cooldowns, chat_id: until_ms})
            case FlowHit(sender_id, at_ms):
                hits = (*world.flow.get(sender_id, ()), at_ms)
                world = replace(world, flow={**world.flow, sender_id: hits})
            case OwnerSpoke(chat_id, at_ms):
                world = replace(world, owner_spoke={**world.owner_spoke, chat_id: at_ms})
            case TakeSlot(sender_id):
                world = replace(world, busy_guests={**world.busy_guests, sender_id: item.envelope.id})
            case ToldFull(lane, sender_id, at_ms):
                world = replace(world, full_told={**world.full_told, (lane, sender_id): at_ms})
            case Register() | GiveBackBotTurn() | Reply() | Warn():
                pass
    if isinstance(decision.outcome, Forward) and decision.outcome.stage == "quotes":
        world = replace(world, lanes={**world.lanes, item.lane: world.lanes.get(item.lane, 0) + 1})
    return world


def fold(items: Iterable[Item], world: World) -> tuple[list[Decision], World]:
    """Decide a batch of one account in ticket order: the decisions and the world after them."""
    decisions: list[Decision] = []
    for item in items:
        decision = decide(item, world)
        world = after(world, item, decision)
        decisions.append(decision)
    return decisions, world


def label_of(message: Message, role: Role) -> str:
    """The sender's label in the conversation's log: nickname, else id, else 未署名发送者; the owner's is empty."""
    if role == "owner":
        return ""
    return (message.sender_name or "").strip() or message.sender_id or _NAMELESS


def _turn(item: Item, world: World, reason: str) -> Decision:
    message, at_ms = item.envelope.message, item.envelope.received_at_ms
    if world.lanes.get(item.lane, 0) >= world.lane_max:
        told_ms = world.full_told.get((item.lane, message.sender_id))
        due = told_ms is None or at_ms - told_ms >= TOLD_EVERY_MS
        told = (ToldFull(item.lane, message.sender_id, at_ms), Reply("lane_full")) if due else ()
        return _throttled(item, world, "lane.full", world.lane_max, *told)
    intents: list[Intent] = []
    if item.role == "guest":
        if world.busy_guests.get(message.sender_id, item.envelope.id) != item.envelope.id:
            return _throttled(item, world, "flow.busy", _GUEST_TURNS)
        intents.append(TakeSlot(message.sender_id))
    # Counted only now: what lane or slot refused is no allowed message.
    if reason == "private":
        intents.append(FlowHit(message.sender_id, at_ms))
    if reason == "owner.all":
        intents.append(OwnerSpoke(message.chat_id, at_ms))
    return Decision(Forward("quotes", reason), tuple(intents))


def _throttled(item: Item, world: World, reason: str, limit: int, *further: Intent) -> Decision:
    message = item.envelope.message
    fields: dict[str, str | int] = {
        "channel": message.channel,
        "account": message.account,
        "sender": message.sender_id,
        "reason": reason,
        "limit": limit,
    }
    return _no_turn(item, world, Finish("throttled", reason), Warn("message_throttled", fields), *further)


def _no_turn(item: Item, world: World, outcome: Finish, *further: Intent) -> Decision:
    """The end of a message that makes no turn: one row in the log, except in read-only mode (the mock is exempt)."""
    message = item.envelope.message
    intents: list[Intent] = []
    if not world.read_only or message.channel == "mock":
        intents.append(Register(message.text, label_of(message, item.role), item.envelope.received_at_ms))
    if message.sender_is_bot and not message.system:
        intents.append(GiveBackBotTurn(bot_run_of(message)))
    return Decision(outcome, (*intents, *further))
