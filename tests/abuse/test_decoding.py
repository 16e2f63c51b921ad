"""What is read back from Redis or from a harness: hostile bytes give the documented error, in bounded time."""

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from shared.envelope import Envelope, NewerVersion, Unreadable
from shared.errors import Malformed, Transient
from shared.frozen import FrozenMismatch, FrozenTurn
from shared.harness.http_stream import EventDecoder, StreamedAnswer
from shared.harness.http_wire import Accepted, AnswerBody, HistoryBody
from shared.harness.port import Answer, HarnessRefused, HistoryPage
from shared.harness.replies import ANSWER_BYTES, retry_after_s, storable
from shared.message import Message
from shared.outcome import STAGES
from shared.prompt import content_of, reply_block_of
from shared.redis.wakeups import queue_name
from tests.abuse.hostile import any_json, any_text, examples, mutations, outcome, raises_only, spoilt, written
from tests.contracts.celery_support import message as wakeup
from workers.guard import defect

MESSAGE = Message(
    channel="mock", account="a", message_id="1", keys=("k",), chat_id="c", chat_type="private", text="hello"
)
ENVELOPE = json.loads(Envelope(id="01", message=MESSAGE, received_at_ms=1).to_json())
TURN = FrozenTurn(envelope_id="01", account="a", channel="mock", text="hello", prompt="hello", reply_to={"note": "n"})


@given(mutations(ENVELOPE).map(written) | spoilt(written(ENVELOPE)) | any_json.map(written) | st.binary(max_size=50))
@examples(200)
def test_a_stored_envelope_is_one_or_newer_or_kept_as_it_is(raw: bytes) -> None:
    read = outcome((NewerVersion, Unreadable), lambda: Envelope.from_json(raw))
    if isinstance(read, Unreadable):
        assert read.raw == raw
        assert len(str(read).encode()) < 2100
    elif not isinstance(read, NewerVersion):
        assert Envelope.from_json(read.to_json()) == read


@given(any_text | spoilt(TURN.encode().encode()).map(lambda raw: raw.decode("utf-8", "surrogateescape")))
@examples(200)
def test_a_frozen_turn_is_the_one_that_was_written_or_refused(stored: str) -> None:
    read = raises_only(FrozenMismatch, lambda: FrozenTurn.decode(stored))
    assert read is None or read == TURN


@given(mutations(TURN.model_dump(mode="json")))
@examples(200)
def test_a_frozen_turn_of_another_shape_with_a_right_digest_is_refused_or_read(value: Any) -> None:
    import hashlib

    body = written(value).decode()
    stored = f"{hashlib.sha256(body.encode()).hexdigest()}\n{body}"
    read = raises_only(FrozenMismatch, lambda: FrozenTurn.decode(stored))
    assert read is None or FrozenTurn.decode(read.encode()) == read


@pytest.mark.parametrize("stage", STAGES)
def test_a_wake_up_with_anything_wrong_in_it_is_told(stage: str) -> None:
    good = wakeup("n", stage=stage)
    assert defect(good, queue_name(stage)) is None

    @given(spoilt(good) | mutations(json.loads(good)).map(written) | st.binary(max_size=50))
    @examples(60)
    def told(raw: bytes) -> None:
        reason = defect(raw, queue_name(stage))
        assert reason is None or len(reason) < 100

    told()


ANSWER: dict[str, Any] = {
    "parts": [
        {"type": "text", "text": "hello"},
        {"type": "image", "name": "a.png", "media_type": "image/png", "url": "https://127.0.0.1/a.png"},
    ],
    "question": {"id": "q", "text": "which?", "options": ["a", "b"], "kind": "question"},
}
LINE = {"role": "user", "text": "t", "at_ms": 5, "turn": "failed", "turn_started_ms": 1, "turn_ended_ms": 2}
HISTORY = {"lines": [LINE, {**LINE, "at_ms": 7}], "more": True}


@given(mutations(ANSWER).map(written) | spoilt(written(ANSWER)))
@examples(250)
def test_a_harness_answer_is_one_or_invalid(raw: bytes) -> None:
    read = raises_only(ValidationError, lambda: AnswerBody.model_validate_json(raw).answer())
    assert isinstance(read, Answer | None)


@given(mutations(HISTORY).map(written), st.integers(-5, 2**70), st.integers(0, 50))
@examples(200)
def test_a_history_is_a_page_within_what_was_asked_or_invalid(raw: bytes, before_ms: int, limit: int) -> None:
    read = raises_only(ValidationError, lambda: HistoryBody.model_validate_json(raw).page(before_ms, limit))
    assert isinstance(read, HistoryPage | None)
    assert read is None or (len(read.lines) <= limit and all(line.at_ms < before_ms for line in read.lines))


@given(mutations({"turn_url": "/turns/1"}).map(written))
@examples(100)
def test_the_body_of_a_202_names_an_address_or_is_invalid(raw: bytes) -> None:
    read = raises_only(ValidationError, lambda: Accepted.model_validate_json(raw))
    assert read is None or isinstance(read.turn_url, str)


STREAM = (
    b'\xef\xbb\xbfevent: delta\ndata: {"text":"he"}\n\nevent: delta\r\ndata: {"text":"llo"}\r\n\r\n: alive\r\r'
    b"event: part\ndata: " + written(ANSWER["parts"][1]) + b'\n\nevent: done\ndata: {"question":null}\n\n'
)


@given(spoilt(STREAM) | st.binary(max_size=100), st.lists(st.integers(0, 400), max_size=8))
@examples(200)
def test_a_stream_cut_anywhere_gives_an_answer_or_the_documented_error(raw: bytes, cuts: list[int]) -> None:
    edges = [0, *sorted(min(cut, len(raw)) for cut in cuts), len(raw)]
    decoder, collected = EventDecoder(), StreamedAnswer()

    def read() -> Answer | None:
        for start, end in itertools.pairwise(edges):
            for event in decoder.feed(raw[start:end]):
                answer = collected.take(event)
                if answer is not None:
                    return answer
        return None

    assert isinstance(raises_only((Malformed, HarnessRefused, Transient), read), Answer | None)


@given(spoilt(STREAM), st.lists(st.integers(0, 400), max_size=8))
@examples(200)
def test_where_a_stream_is_cut_makes_no_difference(raw: bytes, cuts: list[int]) -> None:
    def events(edges: list[int]) -> list[Any]:
        decoder, found = EventDecoder(), list[Any]()
        try:
            for start, end in itertools.pairwise(edges):
                found += decoder.feed(raw[start:end])
        except Malformed:
            pass
        return found

    whole = events([0, len(raw)])
    cut = events([0, *sorted(min(cut, len(raw)) for cut in cuts), len(raw)])
    assert cut[: len(whole)] == whole, "whatever comes before what is malformed may have been told already"


@pytest.mark.parametrize(
    "piece", [b"x" * 1000, b"data: x\n", b"\r", b"\n", b":\n", b"event: a\n", b"data\n", b"\xe2\x80\xa8"]
)
def test_a_stream_without_end_stays_bounded(piece: bytes) -> None:
    decoder = EventDecoder()

    def feed() -> None:
        for _ in range(20 * ANSWER_BYTES // (10_000 * len(piece))):
            decoder.feed(piece * 10_000)

    error = outcome(Malformed, feed)
    keeps_nothing = piece in (b"\r", b"\n", b":\n", b"event: a\n")
    assert keeps_nothing or isinstance(error, Malformed)


def test_deltas_without_end_are_refused_at_the_answers_limit() -> None:
    decoder, collected = EventDecoder(), StreamedAnswer()

    def read() -> None:
        for _ in range(2 * ANSWER_BYTES // 1000):
            for event in decoder.feed(b'event: delta\ndata: {"text":"' + b"x" * 1000 + b'"}\n\n'):
                collected.take(event)

    with pytest.raises(HarnessRefused):
        read()


@given(any_text | st.sampled_from(["1e400", "-inf", "nan", "9" * 5000, "Thu, 99 Jan 1970 00:00:00 GMT", "1_0", "٣"]))
@examples(200)
def test_a_wait_that_is_asked_for_is_seconds_or_nothing(value: str) -> None:
    read = retry_after_s(value, 1_790_000_000_000)
    assert read is None or 0 <= read < float("inf")


@given(any_text)
@examples(200)
def test_what_a_harness_says_can_be_stored(text: str) -> None:
    assert storable(text).encode() or not text


BLOCKS = b'<dsh_im_source>{"a":1}</dsh_im_source>\n\n<dsh_im_reply_to>{"note":"n"}</dsh_im_reply_to>\n\nhello'


@given(any_text | spoilt(BLOCKS).map(lambda raw: raw.decode("utf-8", "surrogateescape")))
@examples(200)
def test_a_prompt_is_taken_apart_or_malformed(prompt: str) -> None:
    raises_only(Malformed, lambda: (content_of(prompt), reply_block_of(prompt)))
