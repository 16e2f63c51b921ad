"""Admission in order: echo, bots, stale, duplicate, conflict, access, read-only (behaviour.md, sections 0, 1, 5)."""

import pytest
from admission_world import GROUP, IMAGE, QUOTE, START_MS, account, item, private, result, results

from shared.admission import Warn, bot_run_of
from workers.admission.policy import Audit, BotRun, Claim, ClaimKeys, SetBotRun, World, after, decide, fold


def world(**changes: object) -> World:
    return World(account(**changes))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"action": "edit"}, "edit"),
        ({"action": "ignore", "ignore_reason": "self"}, "echo"),
        ({"action": "ignore", "ignore_reason": "unsupported"}, "empty"),
        ({"action": "ignore", "ignore_reason": "reaction"}, "notice"),
        ({"action": "ignore", "ignore_reason": "delete-notice"}, "notice"),
        ({"action": "ignore"}, "notice"),
        ({"sender_id": "8001"}, "echo"),
        ({"text": " \n"}, "empty"),
    ],
)
def test_what_is_no_message_for_us_is_ignored_and_claims_nothing(changes: dict[str, object], reason: str) -> None:
    decision = decide(item(**changes), world())
    assert result(decision) == ("ignored", reason)
    assert decision.intents == ()


def test_c18_a_mention_only_message_that_quotes_goes_on() -> None:
    assert result(decide(item(text="", reply_to=QUOTE), world())) == ("engagement", "")


def test_a_message_of_one_picture_goes_on() -> None:
    assert result(decide(item(text="", attachments=[IMAGE]), world())) == ("engagement", "")


def test_c4_a_bot_is_ignored_unless_the_platform_says_it_is_a_person() -> None:
    assert result(decide(item(sender_is_bot=True), world())) == ("ignored", "bot")
    assert result(decide(item(sender_is_bot=False, sender_id="1087968824"), world())) == ("engagement", "")


def test_p17_bots_get_at_most_bot_turns_until_a_human_speaks() -> None:
    """200 events, the default of 5 turns; after a human message again."""
    bots = [item(number, sender_id="9", sender_is_bot=True) for number in range(1, 201)]
    decisions, then = fold(bots, world(answer_bots=True))
    assert [result(one) for one in decisions] == [("engagement", "")] * 5 + [("ignored", "bot.loop")] * 195
    warnings = [intent for one in decisions for intent in one.intents if isinstance(intent, Warn)]
    assert [(one.event, one.fields["limit"]) for one in warnings] == [("bot_loop", 5)]
    tail = [item(300), item(301, sender_id="9", sender_is_bot=True)]
    assert [result(one) for one in fold(tail, then)[0]] == [("engagement", ""), ("engagement", "")]


def test_p17_a_bots_command_counts_towards_its_run() -> None:
    bots = [item(number, sender_id="9", sender_is_bot=True, text="/help") for number in range(1, 4)]
    assert results(bots, world(answer_bots=True, bot_turns=2)) == [("command", "command")] * 2 + [
        ("ignored", "bot.loop")
    ]


def test_p17_a_redelivered_human_message_does_not_reset_the_run() -> None:
    batch = [
        item(1),
        item(2, sender_id="9", sender_is_bot=True),
        item(1, envelope="e9"),
        item(3, sender_id="9", sender_is_bot=True),
    ]
    assert results(batch, world(answer_bots=True, bot_turns=1))[2:] == [
        ("duplicate", "duplicate"),
        ("ignored", "bot.loop"),
    ]


def test_a_looping_bots_message_stays_claimed() -> None:
    """Redelivered after a human message it starts no late turn."""
    loop = item(2, sender_id="9", sender_is_bot=True)
    start = World(account(answer_bots=True), bot_runs={bot_run_of(loop.envelope.message): BotRun(5, True)})
    again = item(2, sender_id="9", sender_is_bot=True, envelope="e9")
    assert results([loop, item(3), again], start) == [
        ("ignored", "bot.loop"),
        ("engagement", ""),
        ("duplicate", "duplicate"),
    ]


@pytest.mark.parametrize(
    ("limit_s", "age_ms", "stale"), [(0, 10**9, False), (60, 60_000, False), (60, 60_001, True), (60, None, False)]
)
def test_stale_is_measured_at_the_time_of_receipt(limit_s: int, age_ms: int | None, stale: bool) -> None:
    sent_at_ms = None if age_ms is None else START_MS - age_ms
    decision = decide(item(sent_at_ms=sent_at_ms), world(stale_after_s=limit_s))
    assert result(decision) == (("ignored", "stale") if stale else ("engagement", ""))


def test_c6_and_z5_another_event_id_is_one_turn() -> None:
    first = item(1, keys=("C07:1790001616.001619", "Ev16"))
    second = item(1, keys=("C07:1790001616.001619", "Ev17"), envelope="e2")
    assert results([first, second], world()) == [("engagement", ""), ("duplicate", "duplicate")]


def test_the_same_envelope_again_goes_on() -> None:
    one = item(1)
    decision, then = decide(one, world()), after(world(), one, decide(one, world()))
    assert decision.intents == (ClaimKeys((f"{GROUP}:1",), one.envelope.message.identity),)
    assert result(decide(one, then)) == ("engagement", "")
    assert decide(one, then).intents == ()


def test_all_keys_are_checked_and_then_all_claimed() -> None:
    one = item(1, keys=("a", "b", "c"))
    assert decide(one, world()).intents == (ClaimKeys(("a", "b", "c"), one.envelope.message.identity),)
    held = World(account(), claims={"c": Claim("e0", one.envelope.message.identity)})
    assert result(decide(one, held)) == ("duplicate", "duplicate")


def test_c13_a_copy_of_a_copy_is_a_duplicate_too() -> None:
    """The second event shares only a key with the first, the third only one with the second."""
    batch = [
        item(1, keys=("m1", "fp"), envelope="a"),
        item(1, keys=("m2", "fp"), envelope="b"),
        item(1, keys=("m2",), envelope="c"),
    ]
    assert results(batch, world()) == [("engagement", ""), ("duplicate", "duplicate"), ("duplicate", "duplicate")]


@pytest.mark.parametrize(
    "changes", [{"sender_id": "4"}, {"text": "后天几点开会"}, {"chat_id": "-200"}, {"attachments": [IMAGE]}]
)
def test_z6_the_same_key_with_other_content_is_a_conflict(changes: dict[str, object]) -> None:
    first, other = item(1, keys=("77",)), item(2, keys=("77",), **changes)
    decisions, then = fold([first, other, item(1, keys=("77",), envelope="e9")], world())
    assert [result(one) for one in decisions] == [
        ("engagement", ""),
        ("conflict", "conflict"),
        ("duplicate", "duplicate"),
    ]
    assert decisions[1].intents == (Warn("source_conflict", {"channel": "telegram", "account": "tg"}),)
    assert then.claims["77"] == Claim("e1", first.envelope.message.identity)


def test_q30_a_quote_makes_no_second_message() -> None:
    """The same key with and without its quote is a duplicate, not a conflict."""
    assert results([item(1, reply_to=QUOTE), item(1, envelope="e2")], world())[1] == ("duplicate", "duplicate")


def test_q28_a_refused_sender_is_denied_with_the_claim_made() -> None:
    one = item(1, sender_id="66", reply_to=QUOTE)
    decisions, _ = fold([one, item(1, sender_id="66", envelope="e2")], world(blocked=["66"]))
    assert [result(each) for each in decisions] == [("denied", "access"), ("duplicate", "duplicate")]
    assert decisions[0].role == "blocked"


def test_p18_and_q29_admission_asks_neither_lane_nor_gate() -> None:
    """A guest is admitted while a member's turn runs, addressed or not; the gate is the next stage's."""
    decision = decide(item(1, mentions_bot=False), world())
    assert result(decision) == ("engagement", "")
    assert decision.role == "guest"


def test_r1_r2_read_only_skips_a_real_channel_with_an_audit_record() -> None:
    decision = decide(item(1), World(account(), read_only=True))
    assert result(decision) == ("skipped", "read-only-mode")
    assert decision.intents == (
        ClaimKeys((f"{GROUP}:1",), item(1).envelope.message.identity),
        Audit("skip", "read-only-mode"),
    )


def test_r1_read_only_comes_before_commands_and_for_owners_too() -> None:
    assert result(decide(private(1, sender_id="1", text="/stop"), World(account(), read_only=True))) == (
        "skipped",
        "read-only-mode",
    )


def test_read_only_comes_after_access() -> None:
    assert result(decide(item(1), World(account(groups="off"), read_only=True))) == ("denied", "access")


def test_r4_read_only_is_off_by_default() -> None:
    assert World(account()).read_only is False


def test_r5_the_mock_channel_is_exempt() -> None:
    mock = account(id="mk", channel="mock")
    one = item(1, channel="mock", account="mk")
    assert result(decide(one, World(mock, read_only=True))) == ("engagement", "")


def test_r6_an_account_named_mock_is_not_exempt() -> None:
    one = item(1, account="mock")
    assert result(decide(one, World(account(id="mock"), read_only=True))) == ("skipped", "read-only-mode")


def test_r28_r29_a_skipped_message_is_a_duplicate_later() -> None:
    _, then = fold([item(1)], World(account(), read_only=True))
    again = item(1, envelope="e2")
    assert result(decide(again, then)) == ("duplicate", "duplicate")
    assert result(decide(again, World(account(), claims=then.claims))) == ("duplicate", "duplicate")


def test_g66_a_duplicate_registers_and_counts_nothing() -> None:
    decisions, _ = fold([item(1, mentions_bot=False), item(1, mentions_bot=False, envelope="e2")], world())
    assert result(decisions[1]) == ("duplicate", "duplicate")
    assert decisions[1].intents == ()


def test_a_human_message_resets_a_run_only_where_there_is_one() -> None:
    one = item(1)
    run = bot_run_of(one.envelope.message)
    assert SetBotRun(run, BotRun()) not in decide(one, world()).intents
    assert SetBotRun(run, BotRun()) in decide(one, World(account(), bot_runs={run: BotRun(2)})).intents
