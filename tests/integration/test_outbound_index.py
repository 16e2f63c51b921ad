"""The outbound index in the pipeline: written by delivery, read and written back by quotes.

The channel is the mock one with an index, whose events may say when the quoted message was sent; everything else is the
real thing. Chats are private, so the sender is the scope.
"""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from shared import channels
from shared.channels.mock import CHANNEL, inbound
from shared.channels.port import Json
from shared.message import Lookup, Message
from shared.redis.client import Redis, connect
from shared.redis.embedded import Embedded
from shared.redis.keys import Keys
from shared.settings import AccountSettings
from workers.ops.scenario.format import load_text
from workers.ops.scenario.report import failure_lines
from workers.ops.scenario.run import run_one

HEAD = """
name: n
config:
  accounts:
    - {id: ix, channel: mock}
    - {id: strict, channel: mock, quote_policy: evidence_only}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    with Embedded.start(tmp_path_factory.mktemp("redis"), durable=False) as running:
        yield running


@pytest.fixture
def client(server: Embedded) -> Iterator[Redis]:
    made = connect(server.url)
    yield made
    made.close()


def normalise(event: Json, account: AccountSettings) -> list[Message]:
    """As the mock channel; a quote without a text is looked for by its id and by `quoted_at_ms`."""
    at_ms = None
    if "reply_to" in event:
        event = {**event, "reply_to": dict(event["reply_to"])}
        at_ms = event["reply_to"].pop("quoted_at_ms", None)
    (message,) = inbound.normalise(event, account)
    known = message.reply_to
    if known is None or known.content:
        return [message]
    keys = (known.message_id,) if known.message_id else ()
    wanted = Lookup(via="index", chat_id=message.chat_id, message_id=known.message_id, keys=keys, quoted_at_ms=at_ms)
    reference = known.model_copy(update={"lookup": wanted, "unavailable_reason": None})
    return [message.model_copy(update={"reply_to": reference})]


@pytest.fixture
def play(server: Embedded, client: Redis, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Run steps, and show each expectation that does not hold. `first` is done when the first event comes in."""

    def run(rest: str, first: Callable[[], Any] | None = None) -> None:
        begun: list[Any] = []

        def arriving(event: Json, account: AccountSettings) -> list[Message]:
            if first is not None and not begun:
                begun.append(first())
            return normalise(event, account)

        limits = dataclasses.replace(CHANNEL.limits, keeps_index=True, looks_back=True, text_units=12)
        indexed = dataclasses.replace(CHANNEL, limits=limits, normalise=arriving)
        monkeypatch.setitem(vars(channels)["_CHANNELS"], "mock", indexed)
        (scenario,) = load_text(HEAD + rest, "index.yaml")
        result = run_one(scenario, client, server.url)
        assert result.ok, "\n".join(failure_lines(result))

    return run


def test_x9_one_entry_for_each_chunk_that_was_sent(play: Callable[..., None]) -> None:
    play("""
harness: {replies: [one two three four five six]}
steps:
  - receive: {account: ix, event: {message_id: "1", sender: anna, text: hi}}
    expect: {disposition: answered, calls: {send: 3, index_write: 3, index_read: 0}, index_size: {ix: 3}}
  - receive: {account: strict, event: {message_id: "1", sender: anna, text: hi}}
    expect: {disposition: answered, calls: {send: 3, index_write: 0, index_read: 0}, index_size: {strict: 0}}
""")


def test_q77_what_was_sent_is_known_when_its_id_is_quoted_in_that_chat(play: Callable[..., None]) -> None:
    play("""
harness: {replies: [ten o'clock]}
steps:
  - receive: {account: ix, event: {message_id: "1", sender: anna, text: when}}
    expect: {index_size: {ix: 1}}
  - receive: {account: ix, event: {message_id: "2", sender: anna, text: sure, reply_to: {message_id: mock-900001}}}
    at: +29d
    expect:
      disposition: answered
      reply_block: {messageId: mock-900001, content: "ten o'clock"}
      calls: {index_read: 1, history: 0}
  - receive: {account: ix, event: {message_id: "3", sender: bob, text: sure, reply_to: {message_id: mock-900001}}}
    expect:
      reply_block: {messageId: mock-900001, content: null, unavailableReason: not-delivered}
      calls: {index_read: 1, history: 0}
""")


def test_q92_the_reply_to_a_command_is_kept_too(play: Callable[..., None]) -> None:
    play("""
steps:
  - receive: {account: ix, event: {message_id: "1", sender: anna, text: /new}}
    expect: {disposition: command, calls: {index_write: 1}, index_size: {ix: 1}}
""")


def test_q93_a_send_that_failed_leaves_no_entry(play: Callable[..., None]) -> None:
    play("""
platform: [{account: ix, call: send, status: 400}]
steps:
  - receive: {account: ix, event: {message_id: "1", sender: anna, text: hi}}
    expect: {disposition: dead, reason: delivery-refused, calls: {send: 1, index_write: 0}, index_size: {ix: 0}}
""")


FOUND_BY_TIME = """
given:
  index:
    - {account: ix, scope: anna, ids: ["7"], text: at ten, sent_at: -12s, completed_at: -10s}
    - {account: ix, scope: bob, ids: ["8"], text: at ten, sent_at: -12s, completed_at: -10s}
steps:
  - receive: {account: ix, event: {message_id: "1", sender: anna, text: sure, reply_to: {quoted_at_ms: 1788235205000}}}
    expect: {reply_block: {content: at ten}, calls: {index_read: 1, history: 0}}
  - receive: {account: ix, event: {message_id: "2", sender: bob, text: sure, reply_to: {quoted_at_ms: 1788235205001}}}
    expect: {reply_block: {unavailableReason: not-delivered, content: null}, calls: {index_read: 1}}
"""


def test_q75_a_quote_with_a_time_alone_is_found_within_15_s(play: Callable[..., None]) -> None:
    """The scenario begins at 1788235200000; the entry completed 10 s before."""
    play(FOUND_BY_TIME)


HISTORY = """
given:
  sessions:
    - conversation: {account: ix, chat: anna}
      messages:
        - {role: user, text: when, at: -62s}
        - {role: assistant, text: at ten, at: -60s}
"""
QUOTE = "{message_id: '7500595754332471560', quoted_at_ms: 1788235141000}"


def test_q81_q82_q64_what_the_history_told_is_written_back(play: Callable[..., None]) -> None:
    play(
        HISTORY
        + f"""
steps:
  - receive: {{account: ix, event: {{message_id: "1", sender: anna, text: sure, reply_to: {QUOTE}}}}}
    expect:
      reply_block: {{messageId: "7500595754332471560", content: at ten}}
      calls: {{index_read: 1, index_write: 2, history: 1}}
      index_size: {{ix: 2}}
      warnings: 0
  - receive: {{account: ix, event: {{message_id: "2", sender: anna, text: again, reply_to: {QUOTE}}}}}
    at: +60s
    expect:
      reply_block: {{messageId: "7500595754332471560", content: at ten}}
      calls: {{index_read: 1, index_write: 1, history: 0}}
      index_size: {{ix: 3}}
"""
    )


def test_q91_a_write_back_that_fails_warns_and_the_content_is_used(play: Callable[..., None], client: Redis) -> None:
    def break_the_texts() -> None:
        client.set(Keys().index("ix", "texts"), "no hash")

    play(
        HISTORY
        + f"""
platform: [{{account: ix, call: send, status: 400}}]
steps:
  - receive: {{account: ix, event: {{message_id: "1", sender: anna, text: sure, reply_to: {QUOTE}}}}}
    expect: {{reply_block: {{content: at ten}}, calls: {{index_write: 1, harness: 1}}, warnings: 1}}
""",
        break_the_texts,
    )


def test_a_write_that_fails_after_a_send_never_fails_the_delivery(play: Callable[..., None], client: Redis) -> None:
    def break_the_texts() -> None:
        client.set(Keys().index("ix", "texts"), "no hash")

    play(
        """
steps:
  - receive: {account: ix, event: {message_id: "1", sender: anna, text: hi}}
    expect: {disposition: answered, sent: [hi], warnings: 1, calls: {send: 1, index_write: 1}}
""",
        break_the_texts,
    )


def test_q95_an_id_that_two_entries_have_ends_the_search(play: Callable[..., None]) -> None:
    """No match by time, no lookback, although both would give one."""
    play(
        HISTORY
        + f"""
  index:
    - {{account: ix, scope: anna, ids: ["7500595754332471560"], text: a, sent_at: -61s, completed_at: -59s}}
    - {{account: ix, scope: anna, ids: ["7500595754332471560"], text: b, sent_at: -9h, completed_at: -9h}}
steps:
  - receive: {{account: ix, event: {{message_id: "1", sender: anna, text: sure, reply_to: {QUOTE}}}}}
    expect:
      disposition: answered
      reply_block: {{unavailableReason: not-delivered, content: null}}
      calls: {{index_read: 1, history: 0, harness: 1}}
"""
    )


def test_f4_f18_under_evidence_only_the_index_is_neither_read_nor_written(play: Callable[..., None]) -> None:
    play(f"""
given:
  index:
    - {{account: strict, scope: anna, ids: ["7500595754332471560"], text: at ten, sent_at: -2s, completed_at: -1s}}
steps:
  - receive: {{account: strict, event: {{message_id: "1", sender: anna, text: sure, reply_to: {QUOTE}}}}}
    expect:
      disposition: replied
      reason: quoted_text_unavailable
      calls: {{harness: 0, index_read: 0, index_write: 0, history: 0}}
      index_size: {{strict: 1}}
  - receive: {{account: strict, event: {{message_id: "2", sender: anna, text: sure, reply_to: {{content: at ten}}}}}}
    expect: {{disposition: answered, calls: {{index_read: 0, index_write: 0}}, index_size: {{strict: 1}}}}
""")
