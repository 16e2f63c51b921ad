"""What is a command, who may give it, what it does (behaviour.md, section 1, Commands; design.md, section 4)."""

import pytest
from admission_world import QUOTE, account, item, private, result, results

from shared.admission import Reply
from workers.admission.commands import LaneView, StopTurn, UnbindSession, command_of
from workers.admission.policy import Decision, Item, World, decide, fold

RUNNING = LaneView(current="t1", state="running", asker="3", waiting=2)


def given(view: LaneView, one: Item) -> Decision:
    return decide(one, World(account(), lanes={one.lane: view}))


def replies(decision: Decision) -> list[str]:
    return [intent.text_name for intent in decision.intents if isinstance(intent, Reply)]


def does(decision: Decision) -> list[object]:
    return [intent for intent in decision.intents if isinstance(intent, UnbindSession | StopTurn)]


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("/help", "help"),
        (" \n/stop\t", "stop"),
        ("/status@relay_bot", "status"),
        ("/new@Relay_BOT", "new"),
        ("/new@8001", "new"),
        ("/new@somebody_else", None),
        ("/new@", None),
        ("/unknown", None),
        ("/news", None),
        ("/stop it please", None),
        ("please /stop", None),
        ("stop", None),
        ("/", None),
        ("", None),
    ],
)
def test_what_is_a_command(text: str, command: str | None) -> None:
    assert command_of(private(text=text).envelope.message, account()) == command


def test_a_group_command_must_be_addressed() -> None:
    settings = account()
    assert command_of(item(text="/help", mentions_bot=False).envelope.message, settings) is None
    assert command_of(item(text="/help", mentions_bot=True).envelope.message, settings) == "help"
    assert command_of(item(text="/help@relay_bot", mentions_bot=False).envelope.message, settings) == "help"


def test_without_a_configured_name_a_name_is_somebody_elses() -> None:
    nameless = account(self_name="", self_id="")
    assert command_of(private(text="/help@relay_bot").envelope.message, nameless) is None


def test_a_listen_only_account_knows_no_command() -> None:
    assert result(decide(private(text="/help"), World(account(send_mode="off")))) == ("engagement", "")


def test_unknown_words_are_ordinary_text() -> None:
    assert result(decide(private(text="/weather"), World(account()))) == ("engagement", "")


def test_q24_a_quoted_command_is_none() -> None:
    one = private(text="这条什么意思", reply_to=QUOTE.model_copy(update={"content": "/new"}))
    decision = given(RUNNING, one)
    assert result(decision) == ("engagement", "")
    assert does(decision) == []


@pytest.mark.parametrize("quoted", ["/stop", "/history", "/model"])
def test_q25_and_z10_quoted_commands_do_nothing(quoted: str) -> None:
    one = private(text="继续", reply_to=QUOTE.model_copy(update={"content": quoted}))
    assert result(given(RUNNING, one)) == ("engagement", "")
    assert does(given(RUNNING, one)) == []


def test_p7_and_z9_a_current_stop_with_a_quote_stops() -> None:
    decision = given(RUNNING, private(text="/stop", reply_to=QUOTE))
    assert result(decision) == ("command", "command")
    assert replies(decision) == ["stop_done"]


def test_q31_status_with_a_quote_is_answered() -> None:
    one = private(text="/status", reply_to=QUOTE)
    decision = given(RUNNING, one)
    assert result(decision) == ("command", "command")
    assert decision.intents[-1] == Reply("status", {"state": "running", "waiting": 2})
    assert given(LaneView(), one).intents[-1] == Reply("status", {"state": "idle", "waiting": 0})


@pytest.mark.parametrize("state", ["running", "ready", "waiting"])
def test_stop_ends_the_current_turn_only(state: str) -> None:
    one = private(text="/stop")
    decision = given(LaneView("t1", state, "3", waiting=2), one)
    assert does(decision) == [StopTurn(one.lane, "t1")]
    assert replies(decision) == ["stop_done"]


@pytest.mark.parametrize("state", ["answered", "sending"])
def test_stop_comes_too_late(state: str) -> None:
    decision = given(LaneView("t1", state, "3"), private(text="/stop"))
    assert does(decision) == []
    assert replies(decision) == ["stop_too_late"]


def test_stop_is_harmless_without_a_turn_for_anybody() -> None:
    decision = given(LaneView(), item(text="/stop"))
    assert result(decision) == ("command", "command")
    assert replies(decision) == ["stop_none"]


@pytest.mark.parametrize(("state", "second"), [("running", "stop_done"), ("ready", "stop_none")])
def test_stop_is_harmless_when_repeated_in_one_batch(state: str, second: str) -> None:
    first, again = private(1, text="/stop"), private(2, text="/stop")
    world = World(account(), lanes={first.lane: LaneView("t1", state, "3")})
    decisions, _ = fold([first, again], world)
    assert [replies(decision) for decision in decisions] == [["stop_done"], [second]]


@pytest.mark.parametrize(("sender", "may"), [("1", True), ("2", True), ("3", True), ("4", False)])
def test_stop_is_for_asker_members_and_owners(sender: str, may: bool) -> None:
    decision = given(RUNNING, item(text="/stop", sender_id=sender))
    assert result(decision) == (("command", "command") if may else ("denied", "command"))
    if not may:
        assert replies(decision) == []
        assert does(decision) == []


@pytest.mark.parametrize(("sender", "may"), [("1", True), ("2", True), ("3", False)])
def test_new_in_a_group_is_for_members_and_owners(sender: str, may: bool) -> None:
    one = item(text="/new", sender_id=sender)
    decision = given(LaneView(), one)
    assert result(decision) == (("command", "command") if may else ("denied", "command"))
    assert does(decision) == ([UnbindSession(one.lane)] if may else [])
    assert replies(decision) == (["new_session"] if may else [])


def test_new_in_private_is_for_everybody() -> None:
    assert replies(given(LaneView(), private(text="/new"))) == ["new_session"]


@pytest.mark.parametrize("view", [RUNNING, LaneView("t1", "waiting", "3", True), LaneView(pending_interaction=True)])
def test_new_is_refused_while_a_turn_runs_or_a_question_is_open(view: LaneView) -> None:
    decision = given(view, private(text="/new"))
    assert result(decision) == ("command", "command")
    assert replies(decision) == ["new_refused"]
    assert does(decision) == []


def test_new_after_stop_in_one_batch() -> None:
    """A running turn is current until its worker ends it; one that waits for a retry ends with the stop."""
    stop, new = private(1, text="/stop"), private(2, text="/new")
    for state, said in (("running", "new_refused"), ("ready", "new_session")):
        decisions, _ = fold([stop, new], World(account(), lanes={stop.lane: LaneView("t1", state, "3")}))
        assert replies(decisions[1]) == [said]


def test_a_system_sender_gives_no_commands() -> None:
    assert result(decide(item(text="/stop", system=True, sender_id="0"), World(account()))) == ("engagement", "")


def test_commands_claim_their_keys() -> None:
    one, again = private(1, text="/help"), private(1, text="/help", envelope="e9")
    assert results([one, again], World(account())) == [("command", "command"), ("duplicate", "duplicate")]
