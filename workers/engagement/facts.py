"""What engagement reads for a batch of one partition: windows, states and slots, in a few commands for all."""

from collections.abc import Sequence

from shared.settings import AccountSettings, RouteSettings, Settings
from workers.claimed import Claimed
from workers.context import Context
from workers.engagement.gate import FLOW_WINDOW_MS
from workers.engagement.policy import Item, World
from workers.moves import QUEUED


def applied(settings: Settings, account: AccountSettings, route: RouteSettings) -> AccountSettings:
    """The account as a route leaves it for one message."""
    changes = {
        name: value
        for name in ("send_mode", "language", "owner_group_mode", "owner_min_interval_s")
        if (value := getattr(route, name)) is not None
    }
    return account.model_copy(update={**changes, "engagement": settings.engagement_for(account, route)})


def read(ctx: Context, account: AccountSettings, items: Sequence[Item], claimed: Claimed) -> World:
    """The world of one account's messages in a batch.

    Room in the lanes, free slots and unused minutes are assumed at first where the batch alone cannot use them up: the
    move's guards see what is so, and where one does not hold the message is decided again with all of it read.
    """
    again = claimed.again or len(items) > ctx.settings.pipeline.lane_max
    keys = ctx.keys
    groups = list(dict.fromkeys(i.envelope.message.chat_id for i in items if i.envelope.message.chat_type == "group"))
    direct = list(dict.fromkeys(i.envelope.message.sender_id for i in items if again and _limited(i)))
    guests = list(dict.fromkeys(i.envelope.message.sender_id for i in items if again and i.role == "guest"))
    lanes = list(dict.fromkeys(i.lane for i in items if again))
    told = list(dict.fromkeys((i.lane, i.envelope.message.sender_id) for i in items if again))
    oldest = min(i.envelope.received_at_ms for i in items) - FLOW_WINDOW_MS
    with ctx.client.pipeline(transaction=False) as pipe:
        if groups:
            pipe.mget([keys.cooldown(account.id, chat) for chat in groups])
        for sender in direct:
            pipe.zrangebyscore(keys.flow(account.id, sender), oldest, "+inf", withscores=True)
        for lane in lanes:
            pipe.hget(keys.lane(lane), "state")
            pipe.zcard(keys.lane(lane, "ready"))
            pipe.zcard(keys.lane(lane, "pending"))
        replies = iter(pipe.execute())
    cooldowns = {chat: int(v) for chat, v in zip(groups, next(replies), strict=True) if v} if groups else {}
    flow = {sender: tuple(int(score) for _, score in next(replies)) for sender in direct}
    waiting = {lane: (next(replies) == QUEUED) + next(replies) + next(replies) for lane in lanes}
    slots = _hash(ctx, keys.guests, [f"{account.id}|{g}" for g in guests])
    full = {pair for pair in told if waiting.get(pair[0], 0) >= ctx.settings.pipeline.lane_max}
    return World(
        lane_max=ctx.settings.pipeline.lane_max,
        judge=ctx.settings.judge.kind != "none",
        read_only=claimed.switches.read_only,
        cooldowns=cooldowns,
        flow=flow,
        owner_spoke={k: int(v) for k, v in _hash(ctx, keys.owner_spoke(account.id), groups).items()}
        if any(i.role == "owner" and i.account.owner_group_mode == "all" for i in items)
        else {},
        busy_guests={k.split("|", 1)[1]: v for k, v in slots.items()},
        lanes=waiting,
        full_told={p: int(v) for p in full if (v := ctx.client.get(keys.warned(account.id, "|".join(p))))},
    )


def _limited(item: Item) -> bool:
    return item.envelope.message.chat_type == "private" and item.role in ("guest", "member")


def _hash(ctx: Context, key: str, fields: list[str]) -> dict[str, str]:
    if not fields:
        return {}
    return {f: v for f, v in zip(fields, ctx.client.hmget(key, fields), strict=True) if v}
