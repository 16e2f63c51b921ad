"""Outbound records, notices, freezing and the sign that a turn runs: what stages make, over a real server."""

import asyncio
from typing import Any

import pytest
import redis
from core_world import NOW_MS, Core, core_of, message, settings_of

from shared.channels.port import Part, Target
from shared.envelope import Envelope
from shared.errors import EffectUnknown, Malformed, Refused, Transient
from shared.frozen import Row
from shared.message import Attachment, ReplyReference, lane_of
from workers import notices, outbound
from workers.acknowledging import EVERY_S, acknowledged
from workers.apply import apply
from workers.context import routed, routed_mode, target_of
from workers.dispatch.facts import frozen
from workers.freezing import context_of, freeze, needs_quotes
from workers.moves import Move

ACCOUNT = settings_of().accounts[0]
TARGET = Target("harbour", "group", "9", "77", {"k": "v"})


def test_a_record_stands_in_delivery_with_all_it_needs() -> None:
    parts = [Part("text", "a"), Part("image", name="b.png", media_type="image/png", ref="r")]
    made = outbound.record("E1-5", ACCOUNT, TARGET, parts, "notice", NOW_MS)
    assert {k: v for k, v in made.fields.items() if k not in ("parts", "target")} == {
        "account": "demo", "channel": "mock", "purpose": "notice", "at": NOW_MS, "made": NOW_MS, "back": "delivery",
    }  # fmt: skip
    assert outbound.parts_of(str(made.fields["parts"])) == parts
    assert outbound.target_from(str(made.fields["target"])) == TARGET


@pytest.mark.parametrize("target", [Target("a", "private"), Target("a", "group", reply_to="1"), TARGET])
def test_what_is_stored_is_read_back(target: Target) -> None:
    made = outbound.record("E1-5", ACCOUNT, target, [], "notice", NOW_MS)
    assert outbound.target_from(str(made.fields["target"])) == target
    assert not {"sender", "role"} & set(made.fields)


def test_an_answer_is_sent_from_its_turns_own_record(core: Core) -> None:
    """Whose it is, its ticket and its lane stay as they were; the ledger is named by turn and step."""
    [one] = core.publish(message())
    core.wake("admission", "engagement")
    before = core.record(one)
    core.wake("dispatch")
    after = core.record(one)
    assert (after["place"], after["kind"], after["purpose"], after["made"]) == (
        "delivery",
        "msg",
        "answer",
        str(NOW_MS),
    )
    assert (after["out"], after["sender"]) == (f"{one}-{int(before['step']) + 1}", "anna")
    assert [p.text for p in outbound.parts_of(after["parts"])] == ["何时涨潮？"]
    assert outbound.target_from(after["target"]) == target_of(message())
    assert core.ctx.client.hmget(core.ctx.keys.lane(after["lane"]), "current", "state") == [one, "answered"]


def test_an_answer_is_cut_clean_and_split_to_the_platforms_length() -> None:
    parts = outbound.planned(ACCOUNT, [Part("text", "<think>x</think>" + "字" * 4_001)])
    assert "".join(p.text for p in parts) == "字" * 4_001
    assert all(len(p.text) <= 4_000 for p in parts)
    assert outbound.planned(ACCOUNT, [Part("text", " <think>x</think> ")]) == []


def test_a_fixed_text_is_in_the_accounts_language() -> None:
    settings = settings_of({"texts": {"failure": {"en": "Alas."}}})
    for language, said in (("en", "Alas."), ("zh", "抱歉，这条消息处理失败了，请稍后再试。")):
        made = outbound.fixed("n", "failure", {}, ACCOUNT, settings, TARGET, "hi", NOW_MS, language=language)
        assert [p.text for p in outbound.parts_of(str(made.fields["parts"]))] == [said]
        assert made.fields["purpose"] == "notice"


def frozen_turn(core: Core) -> Any:
    [one] = core.publish(message())
    core.wake("admission", "engagement")
    return frozen(core.ctx.client.get(core.ctx.keys.frozen_of(core.record(one)["fkey"])))


@pytest.mark.parametrize(
    ("notice", "said"),
    [("auto", ["抱歉，这条消息处理失败了，请稍后再试。"]), ("Ring the office.", ["Ring the office."]), ("", [])],
)
def test_the_sender_of_a_dead_turn_is_told_once(core: Core, notice: str, said: list[str]) -> None:
    settings = settings_of({"harness": {"failure_notice": notice}})
    move = Move("E1", 5, end=("dead", "turn-timeout", "dispatch"))
    notices.failure(move, frozen_turn(core), ACCOUNT, settings, NOW_MS)
    assert [p.text for c in move.creates for p in outbound.parts_of(str(c.fields["parts"]))] == said
    assert [(c.id, c.fields["purpose"]) for c in move.creates] == [("E1-5-failure", "notice")] * len(said)


@pytest.mark.parametrize("end", [None, ("answered", "empty", "dispatch"), ("cancelled", "stop", "dispatch")])
def test_nobody_is_told_of_what_did_not_die(core: Core, end: tuple[str, str, str] | None) -> None:
    move = Move("E1", 5, end=end)
    notices.failure(move, frozen_turn(core), ACCOUNT, settings_of({"harness": {"failure_notice": "auto"}}), NOW_MS)
    assert move.creates == []


@pytest.mark.parametrize(
    ("changes", "account", "needs"),
    [
        ({}, {}, False),
        ({"reply_to": ReplyReference(message_id="1")}, {}, True),
        ({"attachments": (Attachment(kind="image"),)}, {}, True),
        ({}, {"verify_source": True}, True),
    ],
)
def test_z8_only_a_quote_media_or_a_source_to_verify_needs_the_quotes_stage(
    changes: dict[str, Any], account: dict[str, Any], needs: bool
) -> None:
    assert needs_quotes(message(**changes), settings_of(**account).accounts[0]) is needs


def registered(core: Core, chat: str, *texts: str) -> None:
    conversation = lane_of("demo", chat, None, None)
    for n, text in enumerate(texts):
        core.ctx.client.lpush(core.ctx.keys.log(conversation), Row(label="小明", text=text, at_ms=n).model_dump_json())


def test_the_context_is_the_newest_rows_oldest_first(core_client: redis.Redis) -> None:
    core = core_of(core_client, settings_of({"harness": {"context_messages": 2, "failure_notice": ""}}))
    registered(core, "harbour", "a", "b", "c")
    group = message(chat_id="harbour", chat_type="group")
    assert [r.text for r in context_of(core.ctx, group)] == ["b", "c"]
    assert context_of(core.ctx, message(chat_id="quay", chat_type="group")) == []


def test_a_private_chat_has_no_context(core: Core) -> None:
    registered(core, "anna", "a")
    assert context_of(core.ctx, message()) == []


def test_no_context_is_wanted_with_0(core_client: redis.Redis) -> None:
    core = core_of(core_client, settings_of({"harness": {"context_messages": 0}}))
    registered(core, "harbour", "a")
    assert context_of(core.ctx, message(chat_id="harbour", chat_type="group")) == []


def test_z2_freezing_never_overwrites_and_lasts_by_its_move(core: Core) -> None:
    [one] = core.publish(message())
    envelope = Envelope.from_json(core.record(one)["env"])
    key = core.ctx.keys.frozen("demo", "anna:1")
    for system in ("first", "second"):
        core.process.versions.apply(settings_of({"harness": {"system": system}}), "anna", NOW_MS)
        core.process.config.refresh()
        move = Move(one, 1)
        freeze(core.ctx, core.seen(one), envelope, "owner", ACCOUNT, move, early=True)
        assert (move.to, move.fields["harness"], move.fields["ready_at"]) == ("parked:lane", "default", NOW_MS)
        assert ["PERSIST", key] in move.effects
    assert "first" in core.ctx.client.get(key)
    assert 0 < core.ctx.client.pttl(key) <= 7 * 86_400_000


def test_z2_a_freeze_in_engagement_is_written_by_its_move_and_never_overwrites(core: Core) -> None:
    [one] = core.publish(message())
    envelope, move = Envelope.from_json(core.record(one)["env"]), Move(one, 1)
    key = core.ctx.keys.frozen("demo", "anna:1")
    freeze(core.ctx, core.seen(one), envelope, "owner", ACCOUNT, move)
    assert move.freeze is not None
    assert move.freeze[0] == key
    assert not core.ctx.client.exists(key), "a move that is not applied freezes nothing"
    assert apply(core.ctx, [move]).verdicts == ["ok"]
    assert (core.ctx.client.get(key), core.ctx.client.pttl(key)) == (move.freeze[1], -1)
    again = Move(one, 2, to="engagement", freeze=(key, "other bytes"))
    assert apply(core.ctx, [again]).verdicts == ["ok"]
    assert core.ctx.client.get(key) == move.freeze[1]


class Api:
    """A platform that notes what is posted, and fails as it is told."""

    def __init__(self) -> None:
        self.states: list[str] = []
        self.error: Exception | None = None

    async def request(self, *_: object, json: Any = None, **__: object) -> Any:
        self.states.append(json["state"])
        if self.error is not None:
            raise self.error


def signing(client: redis.Redis, ack: str) -> tuple[Core, Api]:
    core = core_of(client, settings_of(ack=ack, credentials={"callback_url": "http://127.0.0.1:9/"}))
    core.api = api = Api()
    core.__post_init__()
    return core, api


def shown(core: Core, rounds: int = 1) -> None:
    """A turn that works for a few rounds of the sign."""

    async def work() -> None:
        async with acknowledged(core.ctx, core.ctx.settings.accounts[0], TARGET):
            until = core.clock.now_ms() + round(EVERY_S * 1000) * (rounds - 1)
            while True:
                await asyncio.sleep(0)
                if core.clock.now_ms() >= until:
                    break
            await asyncio.sleep(0)

    asyncio.run(asyncio.wait_for(work(), 30))


def test_the_sign_is_shown_at_once_and_renewed_as_long_as_the_turn_runs(core_client: redis.Redis) -> None:
    core, api = signing(core_client, "typing")
    shown(core, rounds=3)
    assert len(api.states) >= 3
    assert set(api.states) == {"working"}


def test_a_reaction_says_at_the_end_that_it_is_done(core_client: redis.Redis) -> None:
    core, api = signing(core_client, "reaction")
    shown(core)
    assert (api.states[0], api.states[-1]) == ("working", "done")


def test_without_ack_nothing_is_shown(core_client: redis.Redis) -> None:
    core, api = signing(core_client, "none")
    shown(core)
    assert api.states == []


def test_nothing_is_shown_while_sends_are_paused(core_client: redis.Redis) -> None:
    core, api = signing(core_client, "reaction")
    core.ctx.switches.write("paused", True, "anna", NOW_MS)
    shown(core)
    assert api.states == []


@pytest.mark.parametrize("error", [Transient("a"), EffectUnknown("b"), Refused("c"), Malformed("d"), TimeoutError()])
def test_a_sign_that_fails_harms_nothing(core_client: redis.Redis, error: Exception) -> None:
    core, api = signing(core_client, "reaction")
    api.error = error
    shown(core)
    assert api.states[-1] == "done"


def test_a_server_that_fails_meanwhile_does_not_cost_the_turn_its_answer(core_client: redis.Redis) -> None:
    core, api = signing(core_client, "reaction")
    core_client.delete(core.ctx.keys.switches)
    core_client.set(core.ctx.keys.switches, "of another type: every read fails")
    shown(core, rounds=2)
    assert api.states == []


def test_an_account_is_seen_with_its_overlay(core: Core) -> None:
    core.ctx.access.replace("demo", direct="off")
    account = core.ctx.account("demo")
    assert account is not None
    assert account.direct == "off"
    assert core.ctx.account("nobody") is None


def test_a_route_may_change_how_an_answer_is_sent(core: Core) -> None:
    turn = frozen_turn(core)
    assert routed_mode(settings_of(), ACCOUNT, turn) == "auto"
    held = settings_of({"routes": [{"chat": "anna", "role": "owner", "send_mode": "confirm"}]})
    assert routed_mode(held, ACCOUNT, turn) == "confirm"
    assert routed(held, ACCOUNT, message(), "guest").send_mode is None


def test_z24_a_reply_goes_to_its_askers_message_chat_and_thread() -> None:
    assert target_of(message("77", chat_id="harbour", chat_type="group", thread_id="9", route={"k": "v"})) == TARGET


def test_tokens_are_random_and_never_the_same(core: Core) -> None:
    tokens = {core.ctx.token() for _ in range(100)}
    assert len(tokens) == 100
    assert all(len(t) == 16 for t in tokens)
