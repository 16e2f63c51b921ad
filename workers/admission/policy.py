"""Admission: who gets in, once. Pure: facts in, an outcome and intents out (behaviour.md, sections 0 and 1).

A batch of one partition is folded in ticket order: each message sees what the one before it did. A World belongs to one
account. Windows are measured by `received_at_ms`, so nothing here needs the present time.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from shared.admission import Reply, Warn, admits, bot_run_of, role_of
from shared.channels.port import Switches
from shared.envelope import Envelope
from shared.message import Message
from shared.outcome import Finish, Forward, Outcome
from shared.settings import AccountSettings
from shared.settings_accounts import Role
from workers.admission.commands import LaneView, StopTurn, UnbindSession, command_of, effects_of, permitted

_IGNORED: Final = {
    "self": "echo",
    "echo": "echo",
    "bot": "bot",
    "edit": "edit",
    "empty": "empty",
    "unsupported": "empty",
}
"""The channels' words for what they ignore → our reasons; every other word is a platform's notice."""


@dataclass(frozen=True, slots=True)
class Item:
    """One message of the batch, with its place in the partition and its conversation's lane (24 hex digits)."""

    envelope: Envelope
    ticket: int
    lane: str


@dataclass(frozen=True, slots=True)
class Claim:
    """Who holds a stable key: the envelope's id and `Message.identity`; of a key with a window since when, Unix ms."""

    envelope_id: str
    identity: str
    at_ms: int = 0


@dataclass(frozen=True, slots=True)
class BotRun:
    """Messages of other bots taken in a row without a human one between; `warned` once the limit was reported."""

    count: int = 0
    warned: bool = False


@dataclass(frozen=True, slots=True)
class World:
    """What admission knows. A key that a mapping lacks has its default.

    account: with the run-time access overlay. claims: by stable key, those within their horizon. bot_runs: by
    `bot_run_of`. lanes: by lane.
    """

    account: AccountSettings
    read_only: bool = False
    claims: Mapping[str, Claim] = field(default_factory=dict[str, Claim])
    bot_runs: Mapping[str, BotRun] = field(default_factory=dict[str, BotRun])
    lanes: Mapping[str, LaneView] = field(default_factory=dict[str, LaneView])


@dataclass(frozen=True, slots=True)
class ClaimKeys:
    """Claim `keys`, none of which anybody holds, for this envelope."""

    keys: tuple[str, ...]
    identity: str


@dataclass(frozen=True, slots=True)
class ClaimWindow:
    """Let `key`, which nobody holds now, be held by this envelope from `at_ms` (Unix ms, when it was received)."""

    key: str
    identity: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class SetBotRun:
    """Store the state of the run named `run`; `BotRun()` may as well be deleted."""

    run: str
    state: BotRun


@dataclass(frozen=True, slots=True)
class Audit:
    """Write an audit record; it never holds text."""

    kind: str
    reason: str


Intent: TypeAlias = ClaimKeys | ClaimWindow | SetBotRun | Reply | UnbindSession | StopTurn | Audit | Warn


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of a message, what to write with it in the same move, and who its sender is."""

    outcome: Outcome
    intents: tuple[Intent, ...]
    role: Role


def decide(item: Item, world: World) -> Decision:
    """Decide one message. The steps stand in the order of behaviour.md, section 0."""
    message, account = item.envelope.message, world.account
    role = role_of(message, account)
    claim = _claim(item, world)
    run = world.bot_runs.get(bot_run_of(message), BotRun())

    def end(outcome: Outcome, *intents: Intent) -> Decision:
        return Decision(outcome, intents, role)

    if reason := _not_for_us(message, account):
        return end(Finish("ignored", reason))
    if _is_bot(message):
        if not account.answer_bots:
            return end(Finish("ignored", "bot"))
        if run.count >= account.bot_turns:
            return end(Finish("ignored", "bot.loop"), *claim, *_loop_reported(message, account, run))
    if _is_stale(item.envelope, account):
        return end(Finish("ignored", "stale"))

    held = _held(item, world)
    if message.identity in held:
        # A copy under a further key holds that key from now on, or a copy of the copy would be answered (C-13).
        return end(Finish("duplicate", "duplicate"), *claim)
    if held:
        return end(Finish("conflict", "conflict"), Warn("source_conflict", _where(message)))
    claim += _human_resets(message, run)
    if not admits(role, message, account):
        return end(Finish("denied", "access"), *claim)
    refusal = Switches(read_only=world.read_only).refuses(message.channel)
    if refusal is not None:
        return end(Finish("skipped", refusal), *claim, Audit("skip", refusal))

    # A system sender is registered by the gate and gives no commands.
    command = None if role == "system" else command_of(message, account)
    if command is None:
        return end(Forward("engagement"), *claim, *_bot_counts(message, run))
    view = world.lanes.get(item.lane, LaneView())
    if not permitted(command, message, role, view):
        return end(Finish("denied", "command"), *claim)
    effects = effects_of(command, item.lane, view)
    return end(Finish("command", "command"), *claim, *_bot_counts(message, run), *effects)


def after(world: World, item: Item, decision: Decision) -> World:
    """The world that the next message of the batch sees. A claim once made is never lost or changed."""
    for intent in decision.intents:
        match intent:
            case ClaimKeys(keys, identity):
                claim = Claim(item.envelope.id, identity)
                world = replace(world, claims={**dict.fromkeys(keys, claim), **world.claims})
            case ClaimWindow(key, identity, at_ms):
                claim = Claim(item.envelope.id, identity, at_ms)
                world = replace(world, claims={**world.claims, key: claim})
            case SetBotRun(run, state):
                world = replace(world, bot_runs={**world.bot_runs, run: state})
            case StopTurn(lane, _):
                view = _stopped(world.lanes.get(lane, LaneView()))
                world = replace(world, lanes={**world.lanes, lane: view})
            case Reply() | UnbindSession() | Audit() | Warn():
                pass
    return world


def fold(items: Iterable[Item], world: World) -> tuple[list[Decision], World]:
    """Decide a batch of one account in ticket order: the decisions and the world after them."""
    decisions: list[Decision] = []
    for item in items:
        decision = decide(item, world)
        world = after(world, item, decision)
        decisions.append(decision)
    return decisions, world


def _not_for_us(message: Message, account: AccountSettings) -> str | None:
    if message.action == "edit":
        return "edit"
    if message.action == "ignore":
        return _IGNORED.get(message.ignore_reason or "", "notice")
    if message.sender_id in account.all_self_ids:
        return "echo"
    readable = message.text.strip() or message.attachments or message.reply_to is not None
    return None if readable else "empty"


def _is_bot(message: Message) -> bool:
    return message.sender_is_bot and not message.system


def _is_stale(envelope: Envelope, account: AccountSettings) -> bool:
    sent_at_ms = envelope.message.sent_at_ms
    if account.stale_after_s <= 0 or sent_at_ms is None:
        return False
    return envelope.received_at_ms - sent_at_ms > account.stale_after_s * 1000


def _held(item: Item, world: World) -> frozenset[str]:
    """The identities under which other envelopes hold this message's keys."""
    claims = (_claim_on(key, item, world) for key in item.envelope.message.keys)
    return frozenset(claim.identity for claim in claims if claim and claim.envelope_id != item.envelope.id)


def _claim_on(key: str, item: Item, world: World) -> Claim | None:
    """Who holds a key; a key with a window only for so long."""
    claim, window_ms = world.claims.get(key), item.envelope.message.windows.get(key)
    if claim is None or window_ms is None:
        return claim
    return claim if abs(item.envelope.received_at_ms - claim.at_ms) <= window_ms else None


def _claim(item: Item, world: World) -> tuple[Intent, ...]:
    message, at_ms = item.envelope.message, item.envelope.received_at_ms
    free = tuple(key for key in message.keys if _claim_on(key, item, world) is None)
    lasting = tuple(key for key in free if key not in message.windows)
    passing = tuple(ClaimWindow(key, message.identity, at_ms) for key in free if key in message.windows)
    return ((ClaimKeys(lasting, message.identity),) if lasting else ()) + passing


def _loop_reported(message: Message, account: AccountSettings, run: BotRun) -> tuple[Intent, ...]:
    if run.warned:
        return ()
    fields = {**_where(message), "limit": account.bot_turns}
    return (SetBotRun(bot_run_of(message), replace(run, warned=True)), Warn("bot_loop", fields))


def _human_resets(message: Message, run: BotRun) -> tuple[Intent, ...]:
    human = not message.sender_is_bot and not message.system
    return (SetBotRun(bot_run_of(message), BotRun()),) if human and run != BotRun() else ()


def _bot_counts(message: Message, run: BotRun) -> tuple[Intent, ...]:
    """A command counts too: a bot that answers every reply with `/help` must come to an end."""
    return (SetBotRun(bot_run_of(message), replace(run, count=run.count + 1)),) if _is_bot(message) else ()


def _stopped(view: LaneView) -> LaneView:
    """A turn at the harness stays current until its worker ends it; any other ends in the same move."""
    return (
        view
        if view.state == "running"
        else replace(view, current=None, state=None, asker=None, pending_interaction=False)
    )


def _where(message: Message) -> dict[str, str | int]:
    return {"channel": message.channel, "account": message.account}
