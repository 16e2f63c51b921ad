"""What a turn needs besides the gate: slot, lane, rows of the log, warnings (behaviour.md, sections 1, 2 and 5)."""

import pytest
from engagement_world import START_MS, account, in_batch, item, private, registered, result, results, warnings

from shared.admission import Reply, bot_run_of
from shared.message import Attachment
from workers.engagement.policy import (
    FlowHit,
    GiveBackBotTurn,
    Register,
    TakeSlot,
    ToldFull,
    World,
    after,
    decide,
    fold,
    label_of,
)

FREE = World(lane_max=50)
QUESTION = item(1, mentions_bot=True)


def test_g8_g10_over_the_rate_is_registered_and_warned_with_the_limit() -> None:
    for settings, limit in ((account(), 6), (account(direct_per_minute=2), 2)):
        world = World(lane_max=50, flow={"3": (START_MS,) * limit})
        decision = decide(private(9, 1, settings=settings, text="三"), world)
        assert result(decision) == ("throttled", "flow.rate")
        assert registered(decision) == [("三", "3")]
        assert warnings(decision) == [
            {"channel": "telegram", "account": "tg", "sender": "3", "reason": "flow.rate", "limit": limit}
        ]


def test_g8_a_refused_message_does_not_count() -> None:
    world = World(lane_max=50, busy_guests={"3": "other"})
    decision = decide(private(2), world)
    assert result(decision) == ("throttled", "flow.busy")
    assert not any(isinstance(intent, FlowHit) for intent in decision.intents)


@pytest.mark.parametrize("make", [private, item])
def test_g12_g69_a_guests_second_message_meanwhile_is_throttled(make: object) -> None:
    """In private and in a group: registered, a visible warning, not queued."""
    first, second = (make(number, mentions_bot=True) for number in (1, 2))  # type: ignore[operator]
    decisions, then = fold([first, second], FREE)
    assert [result(one)[0] for one in decisions] == ["quotes", "throttled"]
    assert result(decisions[1])[1] == "flow.busy"
    assert registered(decisions[1]) == [("在吗", "3")]
    assert [one["reason"] for one in warnings(decisions[1])] == ["flow.busy"]
    assert then.lanes == {first.lane: 1}


def test_g12_the_slot_is_the_accounts_whatever_the_chat() -> None:
    batch = [private(1), item(2, mentions_bot=True), item(3, mentions_bot=True, sender_id="4")]
    assert in_batch(batch) == [("quotes", "private"), ("throttled", "flow.busy"), ("quotes", "rule.addressed")]


def test_g13_g14_a_freed_slot_lets_the_next_message_in() -> None:
    assert results([private(1), private(2, 1)]) == [("quotes", "private")] * 2


def test_g14_the_envelope_that_holds_the_slot_goes_on() -> None:
    world = World(lane_max=50, busy_guests={"3": "e1"})
    assert result(decide(private(1), world)) == ("quotes", "private")


def test_p12_members_and_owners_queue_in_their_lane() -> None:
    for sender, reason in (("2", "rule.addressed"), ("1", "owner.addressed")):
        batch = [item(number, sender_id=sender, mentions_bot=True) for number in range(5)]
        assert in_batch(batch) == [("quotes", reason)] * 5


def test_p18_a_guest_is_gated_as_ever_while_a_members_turn_runs() -> None:
    batch = [item(1, sender_id="2", mentions_bot=True), item(2), item(3, 1, mentions_bot=True)]
    assert in_batch(batch) == [("quotes", "rule.addressed"), ("silenced", "no_signal"), ("quotes", "rule.addressed")]


def test_p15_lane_max_and_one_more() -> None:
    batch = [item(number, sender_id="2", mentions_bot=True, text=f"第{number}条") for number in range(1, 52)]
    decisions, _ = fold(batch, FREE)
    assert [result(one) for one in decisions[:50]] == [("quotes", "rule.addressed")] * 50
    assert result(decisions[50]) == ("throttled", "lane.full")
    assert registered(decisions[50]) == [("第51条", "2")]
    assert Reply("lane_full") in decisions[50].intents
    assert [one["limit"] for one in warnings(decisions[50])] == [50]


def test_p15_the_sender_is_told_once_a_minute_each() -> None:
    full = World(lane_max=1, lanes={QUESTION.lane: 1})
    batch = [item(number, at_s, sender_id=sender, mentions_bot=True)
             for number, (at_s, sender) in enumerate([(0, "2"), (59, "2"), (59, "4"), (60, "2")])]  # fmt: skip
    decisions, _ = fold(batch, full)
    assert [result(one) for one in decisions] == [("throttled", "lane.full")] * 4
    told = [any(isinstance(intent, ToldFull) for intent in one.intents) for one in decisions]
    assert told == [True, False, True, True]
    assert [Reply("lane_full") in one.intents for one in decisions] == told


def test_p15_another_lane_has_room_and_a_full_lane_takes_no_slot() -> None:
    full = World(lane_max=1, lanes={QUESTION.lane: 1})
    other = item(2, mentions_bot=True, thread_id="7")
    assert in_batch([QUESTION, other], full) == [("throttled", "lane.full"), ("quotes", "rule.addressed")]


def test_silence_in_a_full_lane_is_silence() -> None:
    assert in_batch([item(1)], World(lane_max=1, lanes={QUESTION.lane: 1})) == [("silenced", "no_signal")]


def test_g59_a_silenced_picture_leaves_its_text_only() -> None:
    one = item(text="看这张图", attachments=[Attachment(kind="image", name="港口.png")])
    assert decide(one, FREE).intents == (Register("看这张图", "3", START_MS),)


@pytest.mark.parametrize(
    ("name", "sender", "label"),
    [("小明", "u1", "小明"), (None, "u1", "u1"), (" ", "u1", "u1"), (None, "", "未署名发送者")],
)
def test_g60_labels(name: str | None, sender: str, label: str) -> None:
    one = item(sender_id=sender, sender_name=name)
    assert registered(decide(one, FREE)) == [("在吗", label)]
    assert label_of(one.envelope.message, "guest") == label


def test_g61_the_owners_label_is_empty() -> None:
    assert registered(decide(item(sender_id="1", sender_name="阿青"), FREE)) == [("在吗", "")]


def test_g62_ordinary_silence_warns_nobody() -> None:
    assert warnings(decide(item(), FREE)) == []


def test_g6_a_system_message_is_registered() -> None:
    one = item(sender_id="0", sender_name="系统", system=True, text="救命")
    assert registered(decide(one, FREE)) == [("救命", "系统")]


def test_an_answered_message_is_not_registered() -> None:
    assert decide(QUESTION, FREE).intents == (TakeSlot("3"),)
    assert decide(private(1), FREE).intents == (TakeSlot("3"), FlowHit("3", START_MS))
    assert decide(item(sender_id="2", mentions_bot=True), FREE).intents == ()


@pytest.mark.parametrize("sender", ["1", "2", "3"])
def test_send_off_registers_and_skips_before_the_gate(sender: str) -> None:
    off = account(send_mode="off")
    for one in (private(1, settings=off, sender_id=sender), item(2, settings=off, sender_id=sender, text="闭嘴")):
        decision = decide(one, World(lane_max=50, judge=True))
        assert result(decision) == ("skipped", "send-off")
        assert [type(intent) for intent in decision.intents] == [Register]


def test_r1_nothing_is_registered_in_read_only_mode_but_for_the_mock() -> None:
    world = World(lane_max=50, read_only=True)
    assert decide(item(), world).intents == ()
    assert len(decide(item(settings=account(id="mk", channel="mock")), world).intents) == 1


def test_p17_a_silenced_bot_gives_its_turn_back() -> None:
    quiet = item(sender_id="9", sender_is_bot=True)
    assert GiveBackBotTurn(bot_run_of(quiet.envelope.message)) in decide(quiet, FREE).intents
    asked = item(sender_id="9", sender_is_bot=True, mentions_bot=True)
    assert decide(asked, FREE).intents == (TakeSlot("9"),)


def test_after_changes_only_what_was_decided() -> None:
    assert after(FREE, item(), decide(item(), FREE)) == FREE
