"""The gate, case by case (behaviour.md, section 2 and cases G)."""

import pytest
from engagement_world import START_MS, account, item, private, result, results

from shared.message import ReplyReference
from shared.settings import AccountSettings
from workers.engagement.gate import is_quiet
from workers.engagement.policy import Cooldown, World, decide

ANSWERED = "quotes"
COOL = account(owner_name="阿青", engagement={"cooldown_s": 600})
FREE = World(lane_max=50)
JUDGED = World(lane_max=50, judge=True)


def cooling(*rest: object, settings: AccountSettings = COOL) -> list[tuple[str, str]]:
    """The results of `rest` after member 2 told her to be quiet at 0 s."""
    first = item(1, 0, settings=settings, sender_id="2", text="少说点", mentions_bot=True)
    return results([first, *rest])[1:]  # type: ignore[list-item]


def test_g1_the_owner_in_private_is_always_answered() -> None:
    assert results([private(sender_id="1")]) == [(ANSWERED, "owner.private")]


def test_g2_the_owner_is_answered_while_the_group_cools() -> None:
    assert cooling(item(2, 10, settings=COOL, sender_id="1", mentions_bot=True)) == [(ANSWERED, "owner.addressed")]


def test_g3_the_owner_to_everyone() -> None:
    assert results([item(sender_id="1", mentions_all=True)]) == [(ANSWERED, "owner.addressed")]


@pytest.mark.parametrize("mode", ["addressed", "off"])
def test_g4_the_owner_unaddressed_goes_into_the_context(mode: str) -> None:
    one = item(sender_id="1", settings=account(owner_group_mode=mode))
    assert results([one]) == [("silenced", "owner.unaddressed")]


def test_g5_the_owner_never_starts_a_cooldown() -> None:
    one = item(sender_id="1", text="少说点")
    assert not any(isinstance(intent, Cooldown) for intent in decide(one, FREE).intents)
    assert results([one, item(2, 1, sender_id="2", mentions_bot=True)])[1] == (ANSWERED, "rule.addressed")


def test_owner_group_mode_all_answers_at_most_once_in_the_interval() -> None:
    """Addressed messages neither use nor restart it."""
    mode = account(owner_group_mode="all", owner_min_interval_s=30)
    assert results(
        [
            item(1, 0, sender_id="1", settings=mode, mentions_bot=True),
            item(2, 1, sender_id="1", settings=mode),
            item(3, 30, sender_id="1", settings=mode),
            item(4, 30.5, sender_id="1", settings=mode, mentions_bot=True),
            item(5, 31, sender_id="1", settings=mode),
            item(6, 32, sender_id="1", settings=mode, chat_id="-200"),
        ]
    ) == [
        (ANSWERED, "owner.addressed"),
        (ANSWERED, "owner.all"),
        ("silenced", "owner.unaddressed"),
        (ANSWERED, "owner.addressed"),
        (ANSWERED, "owner.all"),
        (ANSWERED, "owner.all"),
    ]


def test_owner_group_mode_all_without_an_interval_answers_everything() -> None:
    mode = account(owner_group_mode="all")
    batch = [item(number, 0, sender_id="1", settings=mode) for number in (1, 2)]
    assert results(batch) == [(ANSWERED, "owner.all")] * 2


def test_g6_a_system_sender_is_registered_only() -> None:
    assert results([item(sender_id="0", system=True, text="救命", mentions_bot=True)]) == [("silenced", "system")]


def test_g7_a_stranger_in_private_is_answered_without_the_judge() -> None:
    assert results([private()], JUDGED) == [(ANSWERED, "private")]


def test_g8_g9_six_a_minute_then_again_when_the_window_has_moved() -> None:
    batch = [private(number, number) for number in range(7)]
    assert results([*batch, private(9, 61)]) == [(ANSWERED, "private")] * 6 + [
        ("throttled", "flow.rate"),
        (ANSWERED, "private"),
    ]


def test_g8_the_window_is_sixty_seconds_of_receipt_and_slides() -> None:
    one_a_minute = account(direct_per_minute=1)
    times = [(1, 0), (2, 59.999), (3, 60), (4, 119.999)]
    batch = [private(number, at_s, settings=one_a_minute) for number, at_s in times]
    assert [reason for _, reason in results(batch)] == ["private", "flow.rate", "private", "flow.rate"]


def test_g10_the_configured_limit_holds_for_members_too() -> None:
    two = account(direct_per_minute=2)
    batch = [private(number, number, settings=two, sender_id="2") for number in range(3)]
    assert [reason for _, reason in results(batch)] == ["private", "private", "flow.rate"]


def test_a_limit_of_zero_is_off() -> None:
    free = account(direct_per_minute=0)
    assert results([private(number, 0, settings=free) for number in range(20)]) == [(ANSWERED, "private")] * 20


def test_g11_every_sender_has_a_limit_of_their_own() -> None:
    batch = [private(number, number, sender_id=str(3 + number % 2)) for number in range(12)]
    assert results(batch) == [(ANSWERED, "private")] * 12


@pytest.mark.parametrize("changes", [{"mentions_bot": True}, {"mentions": ["8001"]}, {"mentions_all": True}])
def test_g15_g16_addressed_is_answered_by_rule(changes: dict[str, object]) -> None:
    assert results([item(**changes)], JUDGED) == [(ANSWERED, "rule.addressed")]


def test_g16_everyone_can_be_left_out() -> None:
    one = item(mentions_all=True, settings=account(everyone_addresses=False))
    assert results([one]) == [("silenced", "no_signal")]


def test_g17_a_mention_of_somebody_else_is_none() -> None:
    assert results([item(mentions=["3333"])]) == [("silenced", "no_signal")]


def test_g18_any_mention_where_nobody_knows_her_id() -> None:
    one = item(mentions=["3333"], mentions_bot=None, self_known=False, settings=account(self_id=""))
    assert results([one]) == [(ANSWERED, "rule.addressed")]


def test_g19_digits_in_the_text_are_no_mention() -> None:
    one = item(text="@3889001246 你怎么看", settings=account(self_id="3889001246"))
    assert results([one]) == [("silenced", "no_signal")]


def test_g20_the_owners_display_name() -> None:
    named = account(owner_name="Qing")
    texts = {"问问 Qing 吧": (ANSWERED, "rule.owner_name"), "问问 qing 吧": ("silenced", "no_signal")}
    for text, expected in texts.items():
        assert results([item(text=text, settings=named)]) == [expected]
    assert results([item(text="问问 Qing 吧")]) == [("silenced", "no_signal")]


KEYWORDS = "紧急 救命 故障 坏掉 坏了 报错 出错 崩溃 求助 帮帮我 help urgent error bug HELP Urgent BUG"


@pytest.mark.parametrize("word", KEYWORDS.split())
def test_g21_g22_keywords(word: str) -> None:
    assert results([item(text=f"这里{word}了")]) == [(ANSWERED, "rule.keyword")]


def test_c2_a_plain_message_in_a_topic_is_not_addressed() -> None:
    assert results([item(thread_id="12")]) == [("silenced", "no_signal")]


def test_g23_quiet_hours_silence_nobody() -> None:
    """23:30 of the account's time zone; the start is noon."""
    assert results([item(at_s=11.5 * 3600, mentions_bot=True)]) == [(ANSWERED, "rule.addressed")]


@pytest.mark.parametrize(
    ("start", "end", "hours"),
    [(23, 7, {23, 0, 1, 2, 3, 4, 5, 6}), (9, 17, set(range(9, 17))), (5, 5, set[int]()), (0, 23, set(range(23)))],
)
def test_g24_g25_g26_quiet_hours(start: int, end: int, hours: set[int]) -> None:
    assert {hour for hour in range(24) if is_quiet(hour, start, end)} == hours


@pytest.mark.parametrize("mentions_bot", [True, False])
def test_g28_g43_a_negative_text_starts_the_cooldown(mentions_bot: bool) -> None:
    one = item(1, 5, settings=COOL, sender_id="2", text="少说点", mentions_bot=mentions_bot)
    decision = decide(one, JUDGED)
    assert result(decision) == ("silenced", "cooldown.entered")
    assert decision.intents[-1] == Cooldown("-100", START_MS + 605_000)


@pytest.mark.parametrize("text", ["SHUT UP please", "Be Quiet", "stop talking", "没人问你", "你安静点吧"])
def test_g28_negative_phrases_hold_in_any_case(text: str) -> None:
    assert results([item(text=text)]) == [("silenced", "cooldown.entered")]


def test_g28_g39_without_an_engine_the_default_is_half_an_hour() -> None:
    one = item(text="闭嘴")
    assert decide(one, FREE).intents[-1] == Cooldown("-100", START_MS + 1_800_000)


@pytest.mark.parametrize(
    "changes", [{"mentions_bot": True}, {"mentions_all": True}, {"text": "阿青在不在"}, {"text": "有个 bug"}, {}]
)
def test_g29_to_g32_and_g42_everything_is_silent_while_cooling(changes: dict[str, object]) -> None:
    world = World(lane_max=50, judge=True, cooldowns={"-100": START_MS + 600_000})
    one = item(2, 10, settings=COOL, sender_id="4", **changes)
    assert result(decide(one, world)) == ("silenced", "cooldown.active")


def test_g33_g34_a_piercing_word_is_answered_and_ends_nothing() -> None:
    assert cooling(
        item(2, 10, settings=COOL, sender_id="4", text="救命"),
        item(3, 20, settings=COOL, sender_id="4", mentions_bot=True),
    ) == [(ANSWERED, "cooldown.pierced"), ("silenced", "cooldown.active")]


@pytest.mark.parametrize("text", ["少说点 救命", "少说点，服务器崩溃了"])
def test_g35_g36_negative_beats_piercing(text: str) -> None:
    assert results([item(text=text)]) == [("silenced", "cooldown.entered")]
    assert cooling(item(2, 10, settings=COOL, text=text)) == [("silenced", "cooldown.entered")]


def test_g36_again_while_cooling_restarts_the_clock() -> None:
    assert cooling(
        item(2, 300, settings=COOL, text="闭嘴"),
        item(3, 899, settings=COOL, mentions_bot=True),
        item(4, 901, settings=COOL, mentions_bot=True),
    ) == [("silenced", "cooldown.entered"), ("silenced", "cooldown.active"), (ANSWERED, "rule.addressed")]


def test_g37_piercing_words_are_a_strict_subset_without_bug() -> None:
    table = account().engagement
    assert set(table.piercing_words) < set(table.keywords)
    assert "bug" not in table.piercing_words


def test_g38_g39_the_cooldown_lasts_its_length_and_no_longer() -> None:
    addressed = [item(2, at_s, settings=COOL, sender_id="4", mentions_bot=True) for at_s in (599, 599.999, 600, 601)]
    assert cooling(*addressed) == [("silenced", "cooldown.active")] * 2 + [(ANSWERED, "rule.addressed")] * 2


def test_g40_another_group_does_not_cool() -> None:
    one = item(2, 10, settings=COOL, chat_id="-200", sender_id="4", mentions_bot=True)
    assert cooling(one) == [(ANSWERED, "rule.addressed")]


def test_g41_a_stranger_in_private_starts_no_cooldown() -> None:
    decision = decide(private(text="少说点"), FREE)
    assert result(decision) == (ANSWERED, "private")
    assert not any(isinstance(intent, Cooldown) for intent in decision.intents)


def test_g55_inconclusive_without_a_judge_is_silent_and_else_asks_it() -> None:
    assert results([item()]) == [("silenced", "no_signal")]
    assert result(decide(item(), JUDGED)) == ("judge", "")
    assert decide(item(), JUDGED).intents == ()


@pytest.mark.parametrize("quoted", ["救命", "少说点", "阿青", "/stop"])
def test_g67_quoted_words_have_no_effect(quoted: str) -> None:
    quote = ReplyReference(message_id="5", author_id="8001", content=quoted)
    assert results([item(settings=COOL, reply_to=quote)]) == [("silenced", "no_signal")]
    assert cooling(item(2, 10, settings=COOL, reply_to=quote)) == [("silenced", "cooldown.active")]
