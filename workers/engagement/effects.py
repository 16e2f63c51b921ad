"""What engagement writes: its intents as Redis commands, all in the one move of the message."""

import json
from typing import assert_never, cast

import structlog
from pydantic_core import to_json

from shared import metrics
from shared.admission import Reply, Warn
from shared.envelope import Envelope
from shared.message import lane_of
from shared.outcome import Finish, Forward
from shared.settings import AccountSettings
from shared.settings_accounts import Role
from workers import outbound
from workers.apply import Seen, outcome_move
from workers.claimed import Claimed
from workers.context import Context, routed, target_of
from workers.engagement import facts
from workers.engagement.gate import FLOW_WINDOW_MS
from workers.engagement.policy import (
    TOLD_EVERY_MS,
    Cooldown,
    Decision,
    FlowHit,
    GiveBackBotTurn,
    Item,
    OwnerSpoke,
    Register,
    TakeSlot,
    ToldFull,
    after,
    decide,
)
from workers.freezing import context_of, freeze, needs_quotes
from workers.moves import Move

log = structlog.get_logger()

LOG_ROWS = 200
LOG_MS = 86_400_000
"""A conversation's log keeps 200 rows, 24 hours (behaviour.md, section 2, Registering)."""
WINDOW_SLACK = 10
"""Windows are measured by received time; their keys live ten windows of server time, so that an outage of a few
windows' length forgets nothing. Correctness after that rests on the messages' own times."""


def plan(ctx: Context, batch: list[tuple[Seen, Envelope]], claimed: Claimed) -> list[Move]:
    """The moves of a batch, in ticket order: the policy is folded over it, account by account."""
    names = {envelope.message.account for _, envelope in batch}
    accounts = {name: ctx.settings.account(name) for name in names}
    applied: dict[tuple[str, int], AccountSettings] = {}
    items = [_item(ctx, seen, envelope, accounts[envelope.message.account], applied) for seen, envelope in batch]
    by_account: dict[str, list[Item]] = {}
    for item in items:
        if item is not None:
            by_account.setdefault(item.account.id, []).append(item)
    worlds = {name: facts.read(ctx, some[0].account, some, claimed) for name, some in by_account.items()}
    moves: list[Move] = []
    for (seen, _), item in zip(batch, items, strict=True):
        if item is None:
            moves.append(outcome_move(ctx, "engagement", seen, Finish("ignored", "account.removed")))
            continue
        world = worlds[item.account.id]
        decision = decide(item, world)
        moves.append(_move(ctx, seen, item, decision))
        worlds[item.account.id] = after(world, item, decision)
    return moves


def _item(
    ctx: Context,
    seen: Seen,
    envelope: Envelope,
    account: AccountSettings | None,
    applied: dict[tuple[str, int], AccountSettings],
) -> Item | None:
    """One message of the batch. `applied`: accounts as the routes so far leave them."""
    message, role = envelope.message, cast("Role", seen.get("role") or "guest")
    if account is None:
        return None
    route = routed(ctx.settings, account, message, role)
    said = json.loads(seen.get("verdict")) if seen.get("verdict") else None
    key = (account.id, id(route))
    if key not in applied:
        applied[key] = facts.applied(ctx.settings, account, route)
    return Item(envelope, int(seen.get("ticket")), seen.get("lane"), role, applied[key], said)


def _move(ctx: Context, seen: Seen, item: Item, decision: Decision) -> Move:
    message = item.envelope.message
    conversation = lane_of(message.account, message.chat_id, message.thread_id, None)
    move = outcome_move(ctx, "engagement", seen, decision.outcome)
    move.scopes = [item.lane, f"{message.account}|{message.sender_id}"]
    if isinstance(decision.outcome, Forward) and decision.outcome.stage == "quotes":
        move.fields["sender"] = message.sender_id
        move.guards.append(["room", item.lane, ctx.settings.pipeline.lane_max])
        if not needs_quotes(message, item.account):
            rows = context_of(ctx, message)
            freeze(ctx, seen, item.envelope, item.role, item.account, move, context=rows)
    _write(ctx, item, decision, conversation, move)
    lane = "owner" if item.role == "owner" else "private" if message.chat_type == "private" else "group"
    metrics.count_gate(lane, decision.outcome.reason)
    return move


def _write(ctx: Context, item: Item, decision: Decision, conversation: str, move: Move) -> None:
    """Add to `move` what the decision's intents come to."""
    keys, account, message = ctx.keys, item.account, item.envelope.message
    for intent in decision.intents:
        match intent:
            case Register() if ctx.server.lean():
                pass  # memory is short: the conversation's log is the first to go
            case Register(text, label, at_ms):
                row = to_json({"label": label, "text": text, "at_ms": at_ms}).decode()  # read as a `Row`
                key = keys.log(conversation)
                move.effects.append(["LPUSH", key, row])
                move.tidy += [["LTRIM", key, 0, LOG_ROWS - 1], ["PEXPIRE", key, LOG_MS]]
            case Cooldown(chat_id, until_ms):
                life = int(account.engagement.cooldown_s * 1000) * 2 + LOG_MS
                move.effects.append(["SET", keys.cooldown(account.id, chat_id), until_ms, "PX", life])
            case FlowHit() if not account.direct_per_minute:
                pass  # nobody counts
            case FlowHit(sender_id, at_ms):
                key = keys.flow(account.id, sender_id)
                low = at_ms - FLOW_WINDOW_MS
                move.guards.append(["below", key, f"({low}", "+inf", account.direct_per_minute])
                move.effects.append(["ZADD", key, at_ms, item.envelope.id])
                move.tidy += [
                    ["ZREMRANGEBYSCORE", key, "-inf", low - FLOW_WINDOW_MS * WINDOW_SLACK],
                    ["PEXPIRE", key, FLOW_WINDOW_MS * WINDOW_SLACK],
                ]
            case OwnerSpoke(chat_id, at_ms):
                move.effects.append(["HSET", keys.owner_spoke(account.id), chat_id, at_ms])
            case TakeSlot(sender_id):
                slot = f"{account.id}|{sender_id}"
                move.guards.append(["free", keys.guests, slot, item.envelope.id])
                move.effects.append(["HSET", keys.guests, slot, item.envelope.id])
                move.fields["guest"] = slot
            case ToldFull(lane, sender_id, at_ms):
                key = keys.warned(account.id, f"{lane}|{sender_id}")
                move.effects.append(["SET", key, at_ms, "PX", TOLD_EVERY_MS * WINDOW_SLACK])
            case GiveBackBotTurn(run):
                move.effects.append(["HINCRBY", keys.bot_runs(account.id), run, -1])
            case Reply(name, values):
                made = outbound.fixed(
                    f"{item.envelope.id}-{move.step}", name, values, account, ctx.settings, target_of(message),
                    message.text, ctx.now_ms(),
                )  # fmt: skip
                move.creates.append(made)
            case Warn(event, fields):
                log.warning(event, envelope=item.envelope.id, **fields)
            case _ as never:
                assert_never(never)
