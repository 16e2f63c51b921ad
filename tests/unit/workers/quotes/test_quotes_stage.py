"""The quotes stage at work, over a real server: what is asked, what is frozen, what is not (behaviour.md, 3 and 4)."""

import asyncio
import hashlib
from typing import Any

import pytest
import redis
from core_world import NOW_MS, Core, Told, core_of, message, settings_of
from structlog.testing import capture_logs

from shared.errors import EffectUnknown, Transient
from shared.frozen import FrozenTurn
from shared.harness.port import HistoryLine, HistoryPage
from shared.message import Lookup, Message, QuotedAttachment, ReplyReference
from workers.keeper.keeper import Keeper

UNREADABLE = "无法读取被引用文字，请复制原文后再提问。"
QUOTED_AT = NOW_MS - 3_600_000
EVIDENCE_ONLY: dict[str, Any] = {"quote_policy": "evidence_only"}


def quoting(number: int = 1, *, via: str | None = None, chat: str = "anna", **reference: Any) -> Message:
    lookup = Lookup.model_validate({"via": via, "chat_id": chat, "quoted_at_ms": QUOTED_AT}) if via else None
    fields = {"message_id": "q1", "lookup": lookup, **reference}
    return message(number, text="什么意思", reply_to=ReplyReference.model_validate(fields))


def frozen(core: Core, id_: str) -> FrozenTurn:
    return FrozenTurn.decode(core.ctx.client.get(core.ctx.keys.frozen_of(core.record(id_)["fkey"])))


def frozen_keys(core: Core) -> list[str]:
    return core.ctx.client.keys("t:frozen:*")


def test_f1_explicit_text_reaches_the_harness_once(core_client: redis.Redis) -> None:
    core = core_of(core_client, settings_of(**EVIDENCE_ONLY))
    [one] = core.publish(quoting(content="明天十点开会", explicit_text=True, source="payload"))
    core.wake()
    assert core.end(one) == ("answered", "owner.private")
    [turn] = core.harness.turns
    assert (turn.prompt.count("明天十点开会"), turn.prompt.count("什么意思")) == (1, 1)
    assert turn.prompt.endswith("</dsh_im_reply_to>\n\n什么意思")
    assert frozen(core, one).provenance == "payload"


@pytest.mark.parametrize("via", ["index", "history", "platform", None])
def test_f2_f3_f4_f5_no_text_is_answered_with_the_fixed_reply_alone(core_client: redis.Redis, via: str | None) -> None:
    core = core_of(core_client, settings_of(**EVIDENCE_ONLY))
    core.ctx.sessions.bind(core.record(core.publish(message("warm"))[0])["lane"], "s", NOW_MS)
    core.wake()
    core.harness.turns.clear()
    core.probe.reached.clear()
    [one] = core.publish(quoting(via=via))
    core.wake("admission", "engagement", "quotes")
    assert core.end(one) == ("replied", "quoted_text_unavailable")
    assert [text for text in core.sent() if text == UNREADABLE] == [UNREADABLE]
    core.wake()
    assert (core.harness.turns, core.harness.reads) == ([], [])
    assert not {"index.read", "index.write", "lookup", "history", "harness"} & set(core.probe.reached)
    assert len(frozen_keys(core)) == 1  # the first message's


def test_f22_two_different_quotes_get_identical_bytes(core_client: redis.Redis) -> None:
    core = core_of(core_client, settings_of(language="auto", **EVIDENCE_ONLY))
    core.publish(quoting(1, message_id="q1"), quoting(2, message_id="q2", attachments=({"kind": "file"},)))
    core.wake("admission", "engagement", "quotes")
    assert core.sent() == [UNREADABLE] * 2


def test_f7_a_quoted_image_goes_its_ordinary_way(core_client: redis.Redis) -> None:
    core = core_of(core_client, settings_of(**EVIDENCE_ONLY))
    [one] = core.publish(quoting(attachments=(QuotedAttachment(kind="image"),), source="payload"))
    core.wake()
    assert core.end(one)[0] == "answered"


def test_z8_what_quotes_nothing_skips_the_stage(core: Core) -> None:
    [one] = core.publish(message())
    core.wake("admission", "engagement")
    assert core.record(one)["place"] == "dispatch"
    assert [r["stage"] for r in core.rows(one)] == ["admission", "engagement"]
    assert frozen(core, one).prompt.partition("\n\n")[2] == "何时涨潮？"


def test_x13_a_lookup_that_finds_nothing_runs_the_turn_with_a_marker(core: Core) -> None:
    [one] = core.publish(quoting(via="platform"))
    core.wake()
    assert core.end(one)[0] == "answered"
    assert core.probe.reached.count("lookup") == 1
    assert '"unavailableReason":"not-delivered"' in core.harness.turns[0].prompt


def test_z13_nothing_of_another_conversation_is_asked_for(core: Core) -> None:
    [one] = core.publish(quoting(via="platform", chat="elsewhere"))
    core.wake()
    assert core.end(one)[0] == "answered"
    assert "lookup" not in core.probe.reached
    assert '"unavailableReason":"not-found"' in core.harness.turns[0].prompt


def test_z18_access_that_is_revoked_while_the_parent_is_read_ends_it_there(core: Core) -> None:
    core.probe.at["lookup"] = lambda: core.ctx.access.replace("demo", blocked=["anna"])
    [one] = core.publish(quoting(via="platform"))
    core.wake()
    assert core.end(one) == ("denied", "access")
    assert (core.harness.turns, frozen_keys(core)) == ([], [])
    assert core.ctx.sessions.bound(core.record(one)["lane"]) is None


def die(core: Core, at: str) -> None:
    """The worker dies at a fault point, once; its claim runs out."""

    def death() -> None:
        core.probe.at.pop(at)
        raise ZeroDivisionError

    core.probe.at[at] = death


def taken_over(core: Core) -> None:
    keeper = Keeper(core.ctx, scan=False)
    keeper.tick()
    core.clock.step(3.1)
    keeper.tick()


def test_z4_after_a_death_the_frozen_bytes_stand_and_nothing_is_asked_again(core: Core) -> None:
    die(core, "quotes.after_freeze")
    [one] = core.publish(quoting(via="platform"))
    core.wake()
    [key] = frozen_keys(core)
    before = core.ctx.client.get(key)
    assert core.ctx.client.pttl(key) > 0  # until the move makes it last
    core.process.versions.apply(settings_of({"harness": {"system": "changed meanwhile"}}), "anna", NOW_MS)
    core.process.config.refresh()
    taken_over(core)
    core.wake("quotes")
    assert (core.record(one)["place"], core.ctx.client.pttl(key)) == ("dispatch", -1)
    core.wake()
    assert core.ctx.client.get(key) == before
    assert core.probe.reached.count("lookup") == 1
    assert [t.system for t in core.harness.turns] == [()]


def test_z29_a_frozen_record_that_was_tampered_with_is_dead(core: Core) -> None:
    die(core, "quotes.after_freeze")
    [one] = core.publish(quoting(via="platform"))
    core.wake()
    [key] = frozen_keys(core)
    core.ctx.client.set(key, core.ctx.client.get(key).replace("什么意思", "改了"))
    taken_over(core)
    core.wake()
    assert core.end(one) == ("dead", "frozen-mismatch")
    assert core.harness.turns == []


def test_z1_the_frozen_input_lasts_as_long_as_the_message_lives(core: Core) -> None:
    [one] = core.publish(quoting(content="a", explicit_text=True, source="payload"))
    core.wake("admission", "engagement", "quotes")
    [key] = frozen_keys(core)
    assert core.ctx.client.pttl(key) == -1
    core.wake()
    assert core.end(one)[0] == "answered"
    assert 0 < core.ctx.client.pttl(key) <= 7 * 86_400_000


class Api:
    """A platform that cannot be reached, or answers what it is told."""

    def __init__(self, error: Exception) -> None:
        self.error, self.asked = error, 0

    async def request(self, *_: object, **__: object) -> Any:
        self.asked += 1
        raise self.error


@pytest.mark.parametrize("error", [Transient("down"), EffectUnknown("broken")])
def test_z16_a_source_that_cannot_be_verified_is_tried_again_and_then_dead(
    core_client: redis.Redis, error: Exception
) -> None:
    core = core_of(core_client, settings_of(channel="slack", verify_source=True, credentials={"bot_token": "x"}))
    core.api = Api(error)
    core.__post_init__()
    [one] = core.publish(message(channel="slack"))
    keeper = Keeper(core.ctx, scan=False)
    for _ in range(4):
        core.wake()
        assert core.record(one)["place"] == "due"
        core.clock.step(300)
        keeper.tick()
    core.wake()
    assert core.end(one) == ("dead", "source-verification-failed")
    assert core.api.asked == 5
    assert (core.harness.turns, frozen_keys(core)) == ([], [])


def test_an_account_that_is_busy_makes_it_wait_uncounted(core: Core) -> None:
    busy = {f"m{n}": core.ctx.now_ms() + 60_000 for n in range(8)}
    core.ctx.client.zadd(core.ctx.keys.busy("demo"), busy)
    [one] = core.publish(quoting(via="platform"))
    core.wake()
    record = core.record(one)
    assert (record["place"], record["attempt"], record["back"]) == ("due", "0", "quotes")
    assert core.ctx.client.zscore(core.ctx.keys.due, one) == NOW_MS + 200
    assert "lookup" not in core.probe.reached


def reply(at_ms: int, text: str = "十点退潮", **changes: Any) -> HistoryLine:
    return HistoryLine("assistant", text, at_ms, **changes)


OLDER = HistoryLine("user", "早", QUOTED_AT - 20_000)


def looked_back(core: Core, *pages: HistoryPage, bound: bool = True, **quote: Any) -> str:
    """The id of a message whose quote is looked for in these pages of the bound session."""
    core.harness.pages = list(pages)
    [one] = core.publish(quoting(via="history", **quote))
    if bound:
        core.ctx.sessions.bind(core.record(one)["lane"], "bound", core.ctx.now_ms())
    core.wake()
    assert core.end(one)[0] == "answered"
    return one


def test_q48_q81_a_unique_reply_of_the_bound_session_is_found(core: Core) -> None:
    one = looked_back(core, HistoryPage((reply(QUOTED_AT + 900), OLDER), more=True))
    assert '"content":"十点退潮"' in core.harness.turns[0].prompt
    assert core.harness.reads == [("bound", NOW_MS + 1, 100)]
    assert frozen(core, one).provenance == "history"
    assert {"stage": "quotes", "provenance": "history"}.items() <= core.rows(one)[2].items()


def test_q83_at_most_three_pages_of_a_hundred(core: Core) -> None:
    pages = [HistoryPage((HistoryLine("user", "x", NOW_MS - n * 1000),), more=True) for n in range(1, 9)]
    looked_back(core, *pages)
    assert [(before, limit) for _, before, limit in core.harness.reads] == [
        (NOW_MS + 1, 100),
        (NOW_MS - 1_000, 100),
        (NOW_MS - 2_000, 100),
    ]
    assert '"unavailableReason":"not-delivered"' in core.harness.turns[0].prompt


def test_q90_a_second_candidate_on_the_next_page_makes_it_none(core: Core) -> None:
    first = HistoryPage((reply(QUOTED_AT + 3_000, "a"),), more=True)
    looked_back(core, first, HistoryPage((reply(QUOTED_AT - 3_000, "b"), OLDER), more=True))
    assert len(core.harness.reads) == 2
    assert '"unavailableReason":"not-delivered"' in core.harness.turns[0].prompt


def test_q88_without_a_bound_session_nothing_is_read(core: Core) -> None:
    looked_back(core, HistoryPage((reply(QUOTED_AT), OLDER), more=False), bound=False)
    assert core.harness.reads == []


def test_q89_without_a_quoted_time_nothing_is_read(core: Core) -> None:
    looked_back(core, HistoryPage((reply(QUOTED_AT), OLDER), more=False), lookup={"via": "history", "chat_id": "anna"})
    assert core.harness.reads == []


class Stuck(Told):
    """A history that never answers."""

    async def history(self, session: str, before_ms: int, limit: int) -> HistoryPage:
        await asyncio.Event().wait()
        raise AssertionError


def test_q84_a_source_that_blocks_is_given_up_after_its_budget_and_the_question_goes_on(
    core_client: redis.Redis,
) -> None:
    core = core_of(core_client, harness=Stuck())
    core.clock.patience_s = 0.05
    core.probe.at["harness"] = lambda: setattr(core.clock, "patience_s", 30)
    looked_back(core)
    assert core.clock.now_ms() == NOW_MS + 5_000
    assert '"unavailableReason":"not-delivered"' in core.harness.turns[0].prompt


def test_f15_f17_the_log_tells_reason_account_hash_and_flags_only(core: Core) -> None:
    core.publish(quoting(1, message_id="RAWID", content="QUOTEDTEXT", explicit_text=True, source="payload"))
    core.publish(quoting(2, message_id="RAWID", content="QUOTEDTEXT", explicit_text=True, source="payload"))
    core.wake("admission", "engagement")
    with capture_logs() as logs:
        core.wake("quotes")
    lines = [line for line in logs if line["event"] == "quote_resolved"]
    allowed = {"reason", "account", "has_content", "has_attachments", "unavailable", "quoted_id_hash"}
    assert [set(line) - {"event", "log_level"} for line in lines] == [allowed, allowed]
    told = str(logs)
    assert not any(marker in told for marker in ("RAWID", "QUOTEDTEXT", "什么意思"))
    hashes = [line["quoted_id_hash"] for line in lines]
    assert hashes[0] == hashes[1]
    assert len(hashes[0]) == 16
    assert hashlib.sha256(b"RAWID").hexdigest()[:16] != hashes[0]  # keyed


def test_f16_without_a_quoted_id_there_is_no_hash(core: Core) -> None:
    core.publish(quoting(message_id=None, content="a", explicit_text=True, source="payload"))
    with capture_logs() as logs:
        core.wake("admission", "engagement", "quotes")
    [line] = [line for line in logs if line["event"] == "quote_resolved"]
    assert "quoted_id_hash" not in line
