"""What admission writes: its intents as Redis commands, all in the one move of the message."""

from typing import assert_never

import structlog

from shared.channels import channel
from shared.envelope import Envelope
from shared.message import short_hash
from shared.outcome import Finish
from shared.switches import audit_command
from workers import outbound
from workers.admission import facts
from workers.admission.facts import WARNED
from workers.admission.policy import (
    Audit,
    BotRun,
    ClaimKeys,
    ClaimWindow,
    Decision,
    Item,
    Reply,
    SetBotRun,
    StopTurn,
    UnbindSession,
    Warn,
    World,
    after,
    decide,
)
from workers.apply import Seen, outcome_move
from workers.claimed import Claimed
from workers.context import Context, target_of
from workers.moves import Move

log = structlog.get_logger()


def plan(ctx: Context, batch: list[tuple[Seen, Envelope]], claimed: Claimed) -> list[Move]:
    """The moves of a batch, in ticket order: the policy is folded over it, account by account."""
    items = [Item(envelope, int(seen.get("ticket")), seen.get("lane")) for seen, envelope in batch]
    by_account: dict[str, list[Item]] = {}
    for item in items:
        by_account.setdefault(item.envelope.message.account, []).append(item)
    worlds: dict[str, World] = {}
    for account_id, of_account in by_account.items():
        account = claimed.account(ctx, account_id)
        if account is not None:
            worlds[account_id] = facts.read(ctx, account, of_account, claimed)
    moves: list[Move] = []
    for (seen, envelope), item in zip(batch, items, strict=True):
        message = envelope.message
        world = worlds.get(message.account)
        if world is None:
            moves.append(outcome_move(ctx, "admission", seen, Finish("ignored", "account.removed")))
            continue
        decision = decide(item, world)
        move = outcome_move(ctx, "admission", seen, decision.outcome)
        # Whoever shares a key was decided as if this one's claim had held.
        shared = (f"{message.account}|{key}" for key in message.keys)
        move.scopes = [item.lane, f"{message.account}|{message.sender_id}", *shared]
        _write(ctx, item, decision, world, move)
        worlds[message.account] = after(world, item, decision)
        moves.append(move)
    return moves


def _write(ctx: Context, item: Item, decision: Decision, world: World, move: Move) -> None:
    """Add to `move` what the decision's intents come to."""
    account, message, now = world.account, item.envelope.message, ctx.now_ms()
    move.fields["role"] = decision.role
    for intent in decision.intents:
        match intent:
            case ClaimKeys(keys, identity):
                hashes = [short_hash(account.id, key) for key in keys]
                move.claims += [ctx.keys.claim_of(name) for name in hashes]
                move.claim = f"{item.envelope.id}|{identity}"
                move.fields["dups"] = ",".join(hashes)
                move.fields["dup_ms"] = 2 * channel(account.channel).limits.dedupe_s * 1000
            case ClaimWindow(key, identity, at_ms):
                held_ms = 2 * channel(account.channel).limits.dedupe_s * 1000
                held = f"{item.envelope.id}|{identity}|{at_ms}"
                move.effects.append(["SET", ctx.keys.claim(account.id, key), held, "PX", held_ms])
            case SetBotRun(run, state) if state == BotRun():
                move.effects.append(["HDEL", ctx.keys.bot_runs(account.id), run, f"{run}{WARNED}"])
            case SetBotRun(run, state):
                key, before = ctx.keys.bot_runs(account.id), world.bot_runs.get(run, BotRun())
                move.effects.append(["HSET", key, f"{run}{WARNED}", int(state.warned)])
                if state.count != before.count:  # engagement gives turns back meanwhile: never an absolute count
                    move.effects.append(["HINCRBY", key, run, state.count - before.count])
            case Reply(name, values):
                purpose = "command" if isinstance(decision.outcome, Finish) else "notice"
                made = outbound.fixed(
                    f"{item.envelope.id}-{move.step}", name, values, account, ctx.settings, target_of(message),
                    message.text, now, purpose=purpose,
                )  # fmt: skip
                move.creates.append(made)
            case UnbindSession(lane):
                move.effects.append(["DEL", ctx.sessions.keys.bound(lane)])
            case StopTurn(lane, turn_id):
                view = world.lanes[lane]
                move.guards.append(["current", lane, turn_id, view.state or ""])
                move.stop = True
            case Audit(kind, reason):
                whose = {"account": account.id, "channel": account.channel}
                move.effects.append(audit_command(ctx.keys, kind, reason, now, **whose))
            case Warn(event, fields):
                log.warning(event, envelope=item.envelope.id, **fields)
            case _ as never:
                assert_never(never)
