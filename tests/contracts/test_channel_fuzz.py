"""Hostile events: whatever comes, a parser answers with messages that can be stored, or with Malformed (C-21)."""

import copy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shared.channels import BUILT, channel
from shared.envelope import Envelope
from shared.errors import Malformed
from shared.settings import AccountSettings
from tests.contracts.golden import cases, load

MOCK_EVENTS: list[Any] = [
    {"message_id": "1", "sender": "anna", "text": "hello"},
    [
        {
            "message_id": "2", "sender": "anna", "chat": "team", "thread": "t", "name": "Anna", "text": "@bot hi",
            "mentions_bot": True, "mentions": ["bot"], "mentions_all": False, "sender_is_bot": False, "system": False,
            "reply_to": {
                "message_id": "1", "author_id": "bob", "author_name": "Bob", "content": "before",
                "attachments": [{"kind": "image", "name": "a.png"}], "unavailable_reason": None,
            },
            "attachments": [{"kind": "file", "name": "b", "media_type": "text/plain", "size": 1, "data": "eA=="}],
            "sent_at_ms": 1_790_000_000_000,
        }
    ],
]  # fmt: skip

EVENTS: list[tuple[str, Any]] = [
    *((load(path)["channel"], load(path)["event"]) for path in cases("telegram", "slack")),
    *(("mock", event) for event in MOCK_EVENTS),
]


def nested(depth: int) -> Any:
    """A chain through every key that a parser follows."""
    value: Any = {"text": "deep"}
    for level in range(depth):
        key = ("blocks", "text", "elements", "items")[level % 4]
        value = {key: [value]}
    return value


JUNK: list[Any] = [
    None, True, False, 0, -1, 1.5, float("nan"), float("inf"), 2**63, -(2**70), 10**5000, "", " ", "\x00", "x" * 5000,
    "\ud83d", "\ude00\ud83d", "@", "<@U07TIDEBOT>", "🛟" * 40, [], {}, [[]], [None], [{}], {"": {}}, nested(6),
    {"blocks": nested(40)}, {"id": 10**5000}, [{"offset": -5, "length": 10**30, "type": "mention"}],
    [{"offset": 0, "length": 1, "type": "mention"}, {"offset": 0, "length": 3, "type": "text_mention", "user": 7}],
]  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of everything inside `value`."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in inside for place in places(item, (*path, key)))]


def mutated(event: Any, path: tuple[Any, ...], junk: Any, remove: bool) -> Any:
    if not path:
        return junk
    holder = copied = copy.deepcopy(event)
    for key in path[:-1]:
        holder = holder[key]
    if remove:
        del holder[path[-1]]
    else:
        holder[path[-1]] = junk
    return copied


def survives(name: str, event: Any) -> None:
    account = AccountSettings.model_validate({"id": "acct", "channel": name, "self_id": "7100000042"})
    try:
        messages = channel(name).normalise(event, account)
    except Malformed as error:
        said = str(error)
    else:
        said = ""
    assert len(said.encode()) < 2400
    if said:
        return
    for message in messages:
        assert message.keys
        assert all(message.keys)
        assert message.chat_id
        envelope = Envelope(id="01", message=message, received_at_ms=1)
        assert Envelope.from_json(envelope.to_json()) == envelope
        assert message.identity


@given(st.data())
@settings(max_examples=1500, deadline=None, suppress_health_check=list(HealthCheck))
def test_c21_mutated_events_are_messages_or_malformed(data: st.DataObject) -> None:
    name, event = data.draw(st.sampled_from(EVENTS))
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(places(event)))
        event = mutated(event, path, data.draw(st.sampled_from(JUNK)), data.draw(st.booleans()))
    survives(name, event)


json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


@given(st.sampled_from(sorted(BUILT)), json_like)
@settings(max_examples=300, deadline=None)
def test_c21_any_json_is_messages_or_malformed(name: str, event: Any) -> None:
    survives(name, event)


@pytest.mark.parametrize("name", sorted(BUILT))
def test_c21_events_that_are_no_objects_are_malformed(name: str) -> None:
    account = AccountSettings.model_validate({"id": "acct", "channel": name})
    for event in (None, 5, "text", True, [5] if name == "mock" else [{}]):
        with pytest.raises(Malformed):
            channel(name).normalise(event, account)


def test_c21_a_rich_message_of_a_thousand_levels_is_read_to_a_bound() -> None:
    value: Any = "x"
    for _ in range(900):
        value = {"text": [value]}
    chat = {"id": 5, "type": "private"}
    event = {"update_id": 1, "message": {"message_id": 1, "chat": chat, "rich_message": {"blocks": [value]}}}
    survives("telegram", event)
