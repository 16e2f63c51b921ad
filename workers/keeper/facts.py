"""What the keeper reads for its gauges."""

from shared import metrics
from shared.channels import BUILT, channel
from shared.index import OutboundIndex
from shared.outcome import STAGES, WAITS, Stage
from shared.redis import wakeups
from workers.context import Context
from workers.moves import slots


def gauges(ctx: Context) -> None:
    """Set every gauge that only the keeper has. Depth and age come from the stage sets, in progress included."""
    client, keys, now = ctx.client, ctx.keys, ctx.now_ms()
    for stage in STAGES:
        sets = _sets(ctx, stage)
        with client.pipeline(transaction=False) as pipe:
            for key in sets:
                pipe.zcard(key)
            for key in sets:
                pipe.zrange(key, 0, 0)
            pipe.llen(keys.wake(stage))
            pipe.zcard(keys.letters(stage))
            pipe.zrange(keys.letters(stage), 0, 0, withscores=True)
            replies = pipe.execute()
        counts, firsts = replies[: len(sets)], replies[len(sets) : 2 * len(sets)]
        metrics.queue_depth.labels(stage).set(sum(counts))
        ids = [row[0] for row in firsts if row]
        ages = [int(at) for at in (client.hget(keys.record(i), "at") for i in ids) if at]
        metrics.queue_oldest.labels(stage).set(min(ages, default=now) / 1000 if ids else 0)
        metrics.broker_depth.labels(wakeups.queue_name(stage).removeprefix("wake.")).set(replies[-3])
        metrics.dead_letter_depth.labels(stage).set(replies[-2])
        metrics.dead_letter_oldest.labels(stage).set(replies[-1][0][1] / 1000 if replies[-1] else 0)
    _due(ctx)
    for why in WAITS:
        metrics.parked_depth.labels(why).set(client.zcard(keys.at(f"parked:{why}")))
    oldest = client.zrange(keys.at("parked:lane"), 0, 0, withscores=True)
    metrics.lane_depth.set(client.zcard(keys.at("parked:lane")))
    metrics.lane_oldest.set(oldest[0][1] / 1000 if oldest else 0)
    for account in ctx.settings.accounts[: metrics.MAX_ACCOUNTS]:
        if account.channel in BUILT and channel(account.channel).limits.keeps_index:
            index = OutboundIndex(ctx.scripts, account.id, ctx.settings.index)
            metrics.outbound_index_entries.labels(account.id).set(index.size(now))
    passed = int(client.hget(keys.stats, "lane_passed_over") or 0)
    _catch_up(passed)


SAMPLE = 1_000
"""Due ids whose stage is read; of more than that the gauge shows the same proportions."""


def _due(ctx: Context) -> None:
    """How many wait for a time, by the stage they go back to."""
    total, ids = ctx.client.zcard(ctx.keys.due), ctx.client.zrange(ctx.keys.due, 0, SAMPLE - 1)
    with ctx.client.pipeline(transaction=False) as pipe:
        for id_ in ids:
            pipe.hget(ctx.keys.record(id_), "back")
        backs = pipe.execute()
    for stage in STAGES:
        metrics.due_depth.labels(stage).set(round(total * backs.count(stage) / len(ids)) if ids else 0)


_passed_over = 0


def _catch_up(total: int) -> None:
    global _passed_over
    if total > _passed_over:
        metrics.lane_passed_over.labels("dispatch").inc(total - _passed_over)
    _passed_over = total


def _sets(ctx: Context, stage: Stage) -> list[str]:
    if stage in ("admission", "engagement"):
        return [ctx.keys.at(stage, str(part)) for part in range(ctx.settings.pipeline.partitions)]
    if stage == "dispatch":
        return [ctx.keys.at(place, name) for name in slots(ctx.settings) for place in ("dispatch", "running")]
    return [ctx.keys.at(stage)]
