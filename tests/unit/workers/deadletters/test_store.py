"""Dead letters in Redis: kept whole, replayed through every guard, discarded and trimmed; over a real server."""

import base64
import json
from typing import Any

import redis
from core_world import NOW_MS, Core, core_of, message, settings_of

from shared.harness.port import HarnessRefused
from shared.outcome import Dead, Finish
from workers.apply import apply, outcome_move
from workers.deadletters import store
from workers.deadletters.model import Letter
from workers.keeper.keeper import Keeper

DAY_MS = 86_400_000
REFUSED = HarnessRefused("400")


def dead(core: Core, *numbers: int, **changes: Any) -> list[str]:
    """Messages whose turns the harness refuses, each a letter."""
    core.harness.script = [REFUSED] * len(numbers)
    ids = core.publish(*(message(n, chat_id=f"anna{n}", **changes) for n in numbers))
    core.wake()
    assert [core.end(i) for i in ids] == [("dead", "harness-refused")] * len(numbers)
    return ids


def letter(core: Core, id_: str) -> Letter:
    found = store.get(core.ctx, id_)
    assert found is not None
    return found


def audit(core: Core) -> list[dict[str, Any]]:
    return [json.loads(fields["row"]) for _, fields in core.ctx.client.xrange(core.ctx.keys.audit)]


def test_a_letter_keeps_the_envelope_byte_for_byte(core: Core) -> None:
    [one] = core.publish(message(text='{"n":7500595754332471560,"none":[]} 😀'))
    before = core.record(one)["env"]
    core.harness.script = [REFUSED]
    core.wake()
    assert core.end(one)[0] == "dead"
    assert core.record(one)["env"] == before


def test_a_letter_says_where_why_and_when(core: Core) -> None:
    [one] = dead(core, 1)
    said = letter(core, one)
    assert (said.stage, said.reason, said.error) == ("dispatch", "harness-refused", "HarnessRefused: 400")
    assert (said.channel, said.account, said.worker, said.status) == ("mock", "demo", "unit", "dead")
    assert (said.first_failed_at, said.dead_at, said.replays) == (NOW_MS, NOW_MS, 0)


def test_nothing_of_a_letter_has_an_expiry(core: Core) -> None:
    [one] = dead(core, 1)
    keys, record = core.ctx.keys, core.record(one)
    kept = [
        keys.record(one), keys.letter(one), keys.frozen_of(record["fkey"]),
        *map(keys.claim_of, record["dups"].split(",")),
    ]  # fmt: skip
    assert [core.ctx.client.pttl(key) for key in kept] == [-1] * len(kept)


def test_letters_are_found_oldest_first_and_by_every_filter(core: Core) -> None:
    first = dead(core, 1)[0]
    core.clock.step(5)
    second = dead(core, 2)[0]
    store.poison(core.ctx, b"\xff", "wake.judge", "not UTF-8")
    ctx = core.ctx
    assert [x.id for x in store.find(ctx)][:2] == [first, second]
    assert [x.id for x in store.find(ctx, stage="dispatch", reason="harness-refused")] == [first, second]
    assert [x.id for x in store.find(ctx, channel="mock", account="demo")] == [first, second]
    assert [x.reason for x in store.find(ctx, stage="poison")] == ["poison"]
    assert store.find(ctx, stage="delivery") == []
    assert store.find(ctx, account="other") == []
    assert store.get(ctx, "nobody") is None


def test_more_letters_than_one_page_are_all_found(core: Core) -> None:
    with core.ctx.client.pipeline() as pipe:
        for number in range(2 * store.PAGE + 1):
            account = "last" if number == 2 * store.PAGE else "demo"
            pipe.hset(core.ctx.keys.letter(str(number)), mapping={"stage": "quotes", "account": account})
            pipe.zadd(core.ctx.keys.letters("quotes"), {str(number): number})
        pipe.execute()
    assert len(store.find(core.ctx)) == 2 * store.PAGE + 1
    assert [x.id for x in store.find(core.ctx, account="last")] == [str(2 * store.PAGE)]


def test_raw_letters_keep_their_bytes_and_are_one_letter_however_often_they_come(core: Core) -> None:
    raw = bytes(range(256))
    for _ in range(2):
        store.poison(core.ctx, raw, "wake.judge", "not UTF-8")
    [said] = store.find(core.ctx, stage="poison")
    stored = core.ctx.client.hget(core.ctx.keys.letter(said.id), "raw")
    assert base64.b64decode(stored) == raw
    assert (said.error, said.status, said.dead_at) == ("wake.judge: not UTF-8", "dead", NOW_MS)
    refusal = store.replay(core.ctx, said, "anna", again=True)
    assert refusal is not None
    assert "no message of ours" in refusal


def test_z3_a_replayed_turn_runs_again_from_its_frozen_bytes(core: Core) -> None:
    [one] = dead(core, 1)
    frozen = core.ctx.client.get(core.ctx.keys.frozen_of(core.record(one)["fkey"]))
    assert store.replay(core.ctx, letter(core, one), "anna") is None
    assert letter(core, one).status == "replaying"
    assert store.find(core.ctx) == []
    core.wake()
    assert core.end(one) == ("answered", "owner.private")
    first, again = core.harness.turns
    assert (first.prompt, first.id) == (again.prompt, again.id)
    assert core.ctx.client.get(core.ctx.keys.frozen_of(core.record(one)["fkey"])) == frozen
    assert core.ctx.client.hgetall(core.ctx.keys.depth) == {"demo": "0", "*": "0"}
    [row] = audit(core)
    assert (row["type"], row["who"], row["envelope"], row["result"]) == ("replay", "anna", one, "ok")


def test_a_replay_goes_to_the_end_of_its_lane_and_keeps_its_identity(core: Core) -> None:
    core.harness.script = [REFUSED]
    one, two = core.publish(message(1), message(2, text="two"))
    core.wake("admission", "engagement", "dispatch")
    [three] = core.publish(message(3, text="three"))
    assert store.replay(core.ctx, letter(core, one), "anna") is None
    core.wake()
    assert [core.end(i)[0] for i in (one, two, three)] == ["answered"] * 3
    assert [t.id for t in core.harness.turns][-1] == one
    assert int(core.record(one)["ticket"]) > int(core.record(three)["ticket"])


def test_a_replayed_letter_that_dies_again_is_a_letter_again(core: Core) -> None:
    [one] = dead(core, 1)
    core.clock.step(60)
    core.harness.script = [REFUSED]
    store.replay(core.ctx, letter(core, one), "anna")
    core.wake()
    said = letter(core, one)
    assert (said.status, said.replays, said.dead_at) == ("dead", 1, NOW_MS + 60_000)
    assert said.first_failed_at == NOW_MS
    assert core.ctx.client.pttl(core.ctx.keys.letter(one)) == -1
    assert [x.id for x in store.find(core.ctx)] == [one]


def test_replays_are_counted_up_to_max_replays(core: Core) -> None:
    [one] = dead(core, 1)
    said: list[str | None] = []
    for _ in range(6):
        core.harness.script = [REFUSED]
        said.append(store.replay(core.ctx, letter(core, one), "anna"))
        core.wake()
    assert said[:5] == [None] * 5
    assert "5 times" in str(said[5])
    assert letter(core, one).replays == 5
    assert len(core.harness.turns) == 6


def test_a_letter_whose_message_is_alive_or_gone_is_refused(core: Core) -> None:
    [one] = dead(core, 1)
    old = letter(core, one)
    assert store.replay(core.ctx, old, "anna") is None
    assert store.replay(core.ctx, old, "bert") == "it is not dead any more"
    assert letter(core, one).replays == 1
    core.wake()
    assert store.replay(core.ctx, old, "bert") == "it is not dead any more"
    core.ctx.client.delete(core.ctx.keys.record(one))
    assert store.replay(core.ctx, old, "bert") == "what it needs is no longer kept"
    assert [row["result"] for row in audit(core)] == ["ok", "alive", "alive", "gone"]


def test_x8_a_failed_send_re_enters_delivery_only_and_what_was_sent_stays_sent(core: Core) -> None:
    [one] = core.publish(message())
    core.wake("admission", "engagement", "dispatch")
    out = core.record(one)["out"]
    ctx = core.ctx
    ctx.client.hset(ctx.keys.record(one), "parts", json.dumps([{"kind": "text", "text": t} for t in "ab"]))
    ctx.client.hset(ctx.keys.ledger(out), mapping={"0": "sent|t|1|m-1", "1": "unknown|t|1|timeout"})
    core.wake()
    assert core.end(one) == ("dead", "delivery-unknown")
    said = letter(core, one)
    assert (said.stage, said.out) == ("delivery", out)
    assert "--again" in str(store.replay(ctx, said, "anna"))
    assert core.wake() == 0
    assert store.replay(ctx, said, "anna", again=True) is None
    core.wake()
    assert core.end(one) == ("answered", "owner.private")
    ledger = ctx.client.hgetall(ctx.keys.ledger(out))
    assert ledger["0"] == "sent|t|1|m-1"
    assert ledger["1"].startswith("sent|")
    assert len(core.harness.turns) == 1


def test_r18_a_replay_in_read_only_is_skipped(core_client: redis.Redis) -> None:
    core = core_of(core_client, settings_of(channel="telegram", credentials={"token": "123456789:secret"}))
    core.harness.script = [REFUSED]
    [one] = core.publish(message(channel="telegram"))
    core.wake()
    assert core.end(one)[0] == "dead"
    core.ctx.switches.write("read_only", True, "anna", NOW_MS)
    assert store.replay(core.ctx, letter(core, one), "anna") is None
    core.wake()
    assert core.end(one) == ("skipped", "read-only-mode")
    assert len(core.harness.turns) == 1


def test_an_early_death_is_replayed_where_it_happened(core: Core) -> None:
    [one] = core.publish(message())
    apply(core.ctx, [outcome_move(core.ctx, "admission", core.seen(one), Dead("move-failed", "x"))])
    assert store.replay(core.ctx, letter(core, one), "anna") is None
    assert core.record(one)["place"] == "admission"
    core.wake()
    assert core.end(one) == ("answered", "owner.private")


def test_discarding_lets_the_claims_expire(core: Core) -> None:
    [one] = dead(core, 1)
    keys, record = core.ctx.keys, core.record(one)
    store.discard(core.ctx, one)
    assert store.get(core.ctx, one) is None
    assert store.find(core.ctx) == []
    assert "env" not in core.record(one)
    client = core.ctx.client
    assert 0 < client.pttl(keys.record(one)) <= 7 * DAY_MS
    assert 0 < client.pttl(keys.frozen_of(record["fkey"])) <= 7 * DAY_MS
    [claim] = record["dups"].split(",")
    assert DAY_MS < client.pttl(keys.claim_of(claim)) <= 2 * DAY_MS
    core.publish(message(1, chat_id="anna1"))
    core.wake()
    assert len(core.harness.turns) == 1  # still a duplicate


def test_discarding_a_letter_that_is_being_replayed_harms_nothing(core: Core) -> None:
    [one] = dead(core, 1)
    store.replay(core.ctx, letter(core, one), "anna")
    store.discard(core.ctx, one)
    assert core.ctx.client.pttl(core.ctx.keys.record(one)) == -1
    core.wake()
    assert core.end(one) == ("answered", "owner.private")


def test_discarding_what_is_not_there_does_nothing(core: Core) -> None:
    store.discard(core.ctx, "nobody")
    assert not core.ctx.client.exists(core.ctx.keys.record("nobody"))


def test_letters_beyond_the_count_go_oldest_first(core_client: redis.Redis) -> None:
    core = core_of(core_client, settings_of({"dead_letters": {"max_entries": 2}}))
    ids: list[str] = []
    for number in range(4):
        ids += dead(core, number)
        core.clock.step(1)
    assert store.trim(core.ctx) == 2
    assert [x.id for x in store.find(core.ctx)] == ids[2:]
    assert store.trim(core.ctx) == 0
    assert core_client.pttl(core.ctx.keys.record(ids[0])) > 0


def test_letters_older_than_the_age_go(core: Core) -> None:
    [one] = dead(core, 1)
    store.poison(core.ctx, b"raw", "wake.judge", "not JSON")
    core.clock.step(30 * 86_400 - 1)
    [two] = dead(core, 2)
    assert store.trim(core.ctx) == 0
    core.clock.step(1.001)
    assert store.trim(core.ctx) == 2
    assert [x.id for x in store.find(core.ctx)] == [two]
    assert store.get(core.ctx, one) is None


def test_the_keeper_trims_by_itself(core_client: redis.Redis) -> None:
    core = core_of(core_client, settings_of({"dead_letters": {"max_entries": 1}}))
    dead(core, 1, 2)
    Keeper(core.ctx).tick()
    assert len(store.find(core.ctx)) == 1


def test_a_message_that_ended_well_is_no_letter(core: Core) -> None:
    [one] = core.publish(message())
    apply(core.ctx, [outcome_move(core.ctx, "admission", core.seen(one), Finish("ignored", "empty"))])
    assert store.get(core.ctx, one) is None
