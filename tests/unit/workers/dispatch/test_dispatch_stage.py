"""The dispatch stage at work, over a real server: one turn, asked once, and what ends it (design.md, section 4)."""

import asyncio
from collections.abc import Callable

import pytest
import redis
from core_world import NOW_MS, Core, Told, core_of, message, settings_of

from shared.channels.port import Part
from shared.errors import EffectUnknown, Transient
from shared.harness.port import Answer, HarnessRefused, Question, Turn, TurnAccepted, TurnEvent
from shared.message import Attachment
from workers.keeper.keeper import Keeper


class Hanging(Told):
    """A harness that never answers by itself; `meanwhile` happens while it works."""

    def __init__(self, meanwhile: Callable[[str], object], url: str = "") -> None:
        super().__init__()
        self.meanwhile, self.url = meanwhile, url

    async def ask(self, turn: Turn, on_event: Callable[[TurnEvent], None]) -> Answer:
        self.turns.append(turn)
        if self.url:
            on_event(TurnAccepted(self.url))
        self.meanwhile(turn.id)
        await asyncio.Event().wait()
        raise AssertionError


def asked(core: Core, count: int = 1) -> list[str]:
    """Messages of one chat, their first turn asked."""
    ids = core.publish(*(message(n, text=f"nr {n}") for n in range(count)))
    core.wake()
    return ids


def test_z2_the_harness_gets_the_frozen_input_and_nothing_else(core: Core) -> None:
    [one] = core.publish(message(sender_name="Anna", attachments=(Attachment(kind="file", name="a.pdf"),)))
    core.wake()
    [turn] = core.harness.turns
    assert (turn.id, turn.text, turn.title, turn.attempt) == (one, "何时涨潮？", "何时涨潮？", 1)
    assert turn.source == {
        "channel": "mock", "conversationType": "direct", "senderId": "anna", "senderName": "Anna",
    }  # fmt: skip
    assert turn.prompt.endswith('何时涨潮？\n\n<dsh_im_files>[{"kind":"file","name":"a.pdf"}]</dsh_im_files>')
    assert [(a.kind, a.name) for a in turn.attachments] == [("file", "a.pdf")]
    assert turn.session == core.ctx.sessions.bound(core.record(one)["lane"])


def test_p12_the_turns_of_a_lane_run_one_after_the_other_in_one_session(core: Core) -> None:
    ids = asked(core, 5)
    assert [core.end(i)[0] for i in ids] == ["answered"] * 5
    assert [t.id for t in core.harness.turns] == ids
    assert len({t.session for t in core.harness.turns}) == 1


@pytest.mark.parametrize(
    ("error", "end"),
    [
        (HarnessRefused("400"), ("dead", "harness-refused")),
        (EffectUnknown("broken"), ("dead", "effect-unknown")),
    ],
)
def test_p14_a_turn_that_dies_lets_the_next_one_run(core: Core, error: Exception, end: tuple[str, str]) -> None:
    core.harness.script = [error]
    one, two = asked(core, 2)
    assert (core.end(one), core.end(two)) == (end, ("answered", "owner.private"))


def test_broken_is_repeated_with_the_same_id_by_an_idempotent_harness(core_client: redis.Redis) -> None:
    core = core_of(core_client, harness=Told(EffectUnknown("broken"), idempotent=True))
    [one] = asked(core)
    assert core.record(one)["place"] == "due"
    keeper = Keeper(core.ctx, scan=False)
    keeper.tick()
    core.clock.step(1)
    keeper.tick()
    core.wake()
    assert core.end(one)[0] == "answered"
    assert [(t.id, t.attempt) for t in core.harness.turns] == [(one, 1), (one, 2)]


def test_an_empty_answer_is_not_sent(core: Core) -> None:
    core.harness.script = [Answer((Part("text", "<think>only this</think>"),))]
    [one] = asked(core)
    assert core.end(one) == ("answered", "empty")
    assert core.sent() == []


def test_p6_blocks_that_the_harness_echoes_are_cut_out(core: Core) -> None:
    echoed = '<dsh_im_reply_to>{"content":"x"}</dsh_im_reply_to>\n\n 十点'
    core.harness.script = [Answer((Part("text", echoed),))]
    core.publish(message())
    core.wake("admission", "engagement", "dispatch")
    assert core.sent() == ["十点"]


def test_a_question_is_shown_with_its_options(core: Core) -> None:
    core.harness.script = [Answer((), Question("q", "哪个港？", ("东", "西")))]
    core.publish(message())
    core.wake("admission", "engagement", "dispatch")
    assert core.sent() == ["哪个港？\n1. 东\n2. 西"]


def test_with_send_mode_confirm_nothing_is_sent(core_client: redis.Redis) -> None:
    core = core_of(core_client, settings_of(send_mode="confirm"))
    [one] = asked(core)
    assert core.end(one) == ("held", "draft")
    assert core.sent() == []


def test_stop_cancels_the_running_turn_and_keeps_the_waiting_ones(core_client: redis.Redis) -> None:
    core = core_of(core_client)

    def stop(id_: str) -> None:
        core.ctx.client.hset(core.ctx.keys.record(id_), "cancel", 1)
        core.process.beats.tick()
        core.harness = Told()  # whoever comes next is answered

    core.harness = hanging = Hanging(stop)
    one, two = asked(core, 2)
    assert (core.end(one), core.end(two)) == (("cancelled", "stop"), ("answered", "owner.private"))
    assert hanging.cancelled == [one]


def test_a_turn_that_is_handed_back_uses_up_no_attempt(core_client: redis.Redis) -> None:
    core = core_of(core_client)
    core.harness = Hanging(lambda _: [hold.tell("drain") for hold in core.process.beats.held()])
    [one] = asked(core)
    record = core.record(one)
    assert (record["place"], record["attempt"], record["back"]) == ("due", "0", "dispatch")
    assert core.ctx.client.hget(core.ctx.keys.lane(record["lane"]), "current") == one
    assert core.ctx.client.zcard(core.ctx.keys.at("running", "default")) == 0
    assert core.rows(one)[-1]["reason"] == "handed-back"


def test_a_turn_whose_lease_is_lost_changes_nothing(core_client: redis.Redis) -> None:
    core = core_of(core_client)

    def steal(id_: str) -> None:
        core.ctx.client.hset(core.ctx.keys.held, f"turn:{id_}", f"thief|0|{id_}")
        core.process.beats.tick()

    core.harness = hanging = Hanging(steal)
    [one] = asked(core)
    assert core.end(one) == ("running", "")
    assert core.ctx.client.hget(core.ctx.keys.held, f"turn:{one}") == f"thief|0|{one}"
    assert hanging.cancelled == []


def test_p14_a_turn_that_reaches_its_limit_is_cancelled_and_dead(core_client: redis.Redis) -> None:
    core = core_of(core_client)

    def again(_: str) -> None:
        core.harness = Told()

    core.harness = hanging = Hanging(again)
    core.probe.at["dispatch.after_start"] = lambda: setattr(core.clock, "patience_s", 30 if hanging.turns else 0.05)
    one, two = asked(core, 2)
    assert (core.end(one), core.end(two)) == (("dead", "turn-timeout"), ("answered", "owner.private"))
    assert hanging.cancelled == [one]
    assert core.clock.now_ms() == NOW_MS + 300_000


def test_a_turn_that_goes_on_elsewhere_is_polled_by_any_worker(core_client: redis.Redis) -> None:
    core = core_of(core_client)

    def drain(_: str) -> None:
        for hold in core.process.beats.held():
            hold.tell("drain")

    core.harness = Hanging(drain, url="https://h/turns/1")
    [one] = asked(core)
    assert core.record(one)["url"] == "https://h/turns/1"
    core.harness = Told()
    Keeper(core.ctx, scan=False).tick()
    core.wake()
    assert core.end(one)[0] == "answered"
    assert "url" not in core.record(one)


def test_r22_a_turn_between_two_tries_is_not_tried_again_in_read_only(core_client: redis.Redis) -> None:
    core = core_of(core_client, settings_of(channel="telegram"), Told(Transient("503")))
    [one] = core.publish(message(channel="telegram"))
    core.wake()
    assert core.record(one)["place"] == "due"
    core.ctx.switches.write("read_only", True, "anna", NOW_MS)
    keeper = Keeper(core.ctx, scan=False)
    keeper.tick()
    core.clock.step(2)
    keeper.tick()
    core.wake()
    assert core.end(one) == ("skipped", "read-only-mode")
    assert len(core.harness.turns) == 1


def test_r5_mock_is_exempt(core: Core) -> None:
    core.ctx.switches.write("read_only", True, "anna", NOW_MS)
    core.ctx.switches.write("safe_mode", True, "anna", NOW_MS)
    [one] = asked(core)
    assert core.end(one)[0] == "answered"


def test_a_turn_older_than_give_up_s_is_dead(core: Core) -> None:
    [one] = core.publish(message())
    core.wake("admission", "engagement")
    core.clock.step(3600.001)
    core.wake()
    assert core.end(one) == ("dead", "gave-up")
    assert core.harness.turns == []


def test_p22_three_failures_in_a_row_open_the_breaker_and_one_turn_probes(core_client: redis.Redis) -> None:
    core = core_of(core_client, settings_of({"harness": {"failure_notice": "", "breaker": {"open_s": 15}}}))
    core.harness.script = [Transient("down")] * 4
    ids = core.publish(*(message(n, chat_id=f"c{n}") for n in range(6)))
    core.wake()
    assert len(core.harness.turns) == 3
    assert sorted(core.record(i)["place"] for i in ids) == ["dispatch"] * 3 + ["due"] * 3
    keeper = Keeper(core.ctx, scan=False)
    keeper.tick()
    core.clock.step(14.9)
    keeper.tick()
    core.wake()
    assert len(core.harness.turns) == 3
    core.clock.step(0.2)
    keeper.tick()
    core.wake()
    assert len(core.harness.turns) == 4  # one probe, which fails
    probe = core.harness.turns[-1].id
    assert core.rows(probe)[-1]["reason"] == "harness-breaker"
    assert core.record(probe)["attempt"] == str(core.harness.turns[-1].attempt - 1)
    for _ in range(3):
        core.clock.step(15.1)
        keeper.tick()
        core.wake()
    assert [core.end(i)[0] for i in ids] == ["answered"] * 6
    assert not {"fails", "open_until", "probe"} & set(core_client.hgetall(core.ctx.keys.harness("default")))


def test_z29_frozen_bytes_that_are_gone_or_changed_are_a_dead_letter(core: Core) -> None:
    one, two = core.publish(message(1, chat_id="a"), message(2, chat_id="b"))
    core.wake("admission", "engagement")
    keys = [core.ctx.keys.frozen_of(core.record(i)["fkey"]) for i in (one, two)]
    core.ctx.client.delete(keys[0])
    core.ctx.client.append(keys[1], " ")
    core.wake()
    assert [core.end(i) for i in (one, two)] == [("dead", "frozen-mismatch")] * 2
    assert core.harness.turns == []


def test_an_account_that_was_removed_ends_its_turns(core: Core) -> None:
    [one] = core.publish(message())
    core.wake("admission", "engagement")
    core.process.versions.apply(settings_of({"accounts": []}), "anna", NOW_MS)
    core.process.config.refresh()
    core.wake()
    assert core.end(one) == ("ignored", "account.removed")


def without_its_harness(core: Core) -> None:
    """The configuration loses the harness `deep`, as the real context would tell."""
    core.process.versions.apply(settings_of(), "anna", NOW_MS)
    core.process.config.refresh()

    def gone(name: str) -> Told:
        core.ctx.settings.harness_named(name)
        return core.harness

    core.ctx.harness = gone


def deep(client: redis.Redis) -> Core:
    return core_of(client, settings_of({"harnesses": {"deep": {}}, "routes": [{"harness": "deep"}]}))


def test_a_queued_turn_whose_harness_was_removed_is_a_dead_letter(core_client: redis.Redis) -> None:
    core = deep(core_client)
    [one] = core.publish(message())
    core.wake("admission", "engagement")
    without_its_harness(core)
    core.wake()
    assert core.end(one) == ("dead", "harness-refused")
    assert core_client.hget(core.ctx.keys.letter(one), "error") == "no harness deep is configured"


def test_a_running_turn_whose_worker_died_and_whose_harness_was_removed_is_effect_unknown(
    core_client: redis.Redis,
) -> None:
    core = deep(core_client)
    [one] = core.publish(message())
    core.wake("admission", "engagement")
    assert core.start("deep")[1] == one
    without_its_harness(core)
    keeper = Keeper(core.ctx, scan=False)
    keeper.tick()
    core.clock.step(30.1)
    keeper.tick()
    assert core.end(one) == ("dead", "effect-unknown")
