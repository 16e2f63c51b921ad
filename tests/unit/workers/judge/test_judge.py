"""The judge stage: one verdict on the record, and back to the partition under the old ticket (design.md, section 3)."""

import asyncio
import json

from core_world import Core, message

from shared.beats import Hold
from shared.outcome import Forward
from workers.apply import apply
from workers.claimed import Claimed
from workers.judge.effects import plan
from workers.judge.facts import verdict
from workers.judge.policy import outcome


def test_whatever_it_says_the_message_goes_back_to_engagement() -> None:
    assert outcome() == Forward("engagement", "judged")


def test_g54_an_absent_judge_is_a_failed_one(core: Core) -> None:
    assert verdict(core.ctx) == {"failed": True}
    assert core.probe.reached[-1] == "judge"


def test_the_verdict_is_written_to_the_record_and_the_ticket_stays(core: Core) -> None:
    [one, two] = core.publish(message(1), message(2))
    seen = core.seen(one)
    [(who, move)] = asyncio.run(plan(core.ctx, seen, Hold("judge:x", "t", 3, 9, 0), Claimed(core.ctx.switches.read())))
    assert (who, move.to) == (seen, "engagement")
    assert apply(core.ctx, [move]).verdicts == ["ok"]
    record = core.record(one)
    assert json.loads(record["verdict"]) == {"failed": True}
    assert (record["place"], record["ticket"]) == ("engagement", "1")
    assert core.ctx.client.zscore(core.ctx.keys.at("engagement", record["part"]), one) == 1
    assert core.record(two)["ticket"] == "2"
