"""Limits and cleaning of what was quoted (behaviour.md, section 3)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.message import Lookup, QuotedAttachment, ReplyReference
from shared.reply import clean_file_name, clean_line, clean_reference, clean_text, explicit_text, reference_from_parts

REMOVED = [
    *range(0x0A), 0x0B, 0x0C, *range(0x0E, 0x20), *range(0x7F, 0xA0), 0x200B, 0x200E, 0x200F,
    *range(0x202A, 0x202F), *range(0x2060, 0x2065), *range(0x2066, 0x2070), 0xFEFF,
]  # fmt: skip


def quoted(**parts: Any) -> ReplyReference:
    return reference_from_parts(parts)


def test_q7_control_and_bidi_go_chinese_emoji_and_lf_stay() -> None:
    assert quoted(content="a\u0000b\u202ec\r\n中文😀\rz").content == "abc\n中文😀\nz"


def test_cleaning_removes_exactly_the_listed_characters() -> None:
    for code in range(0x11_0000):
        character = chr(code)
        cleaned = clean_text(f"a{character}b")
        if code in REMOVED:
            assert cleaned == "ab", hex(code)
        elif code == 0x0D:
            assert cleaned == "a\nb"
        elif 0xD800 <= code <= 0xDFFF:
            assert cleaned == "a\ufffdb"
        else:
            assert cleaned == f"a{character}b", hex(code)


def test_q8_eight_thousand_code_points_fit() -> None:
    ref = quoted(content="字" * 8_000)
    assert (len(ref.content or ""), ref.truncated) == (8_000, False)


@pytest.mark.parametrize("character", ["😀", "字"])
def test_q9_f20_z23_one_more_is_cut_and_marked(character: str) -> None:
    ref = quoted(content=character * 8_001)
    assert (ref.content, ref.truncated) == (character * 8_000, True)


def test_white_space_is_trimmed_before_the_cut() -> None:
    ref = quoted(content="  " + "字" * 8_000 + "\n\n")
    assert (len(ref.content or ""), ref.truncated) == (8_000, False)


@pytest.mark.parametrize(("count", "kept", "truncated"), [(20, 20, False), (21, 20, True)])
def test_q10_q11_twenty_attachments(count: int, kept: int, truncated: bool) -> None:
    ref = quoted(attachments=[{"kind": "file", "name": f"file-{n}"} for n in range(count)])
    assert (len(ref.attachments), ref.truncated) == (kept, truncated)
    assert ref.attachments[-1].name == "file-19"


def test_q12_unknown_kind_is_other() -> None:
    assert quoted(attachments=[{"kind": "hologram"}]).attachments == (QuotedAttachment(kind="other"),)


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("../图片.png", "图片.png"),
        ("C:\\temp\\a b.txt", "a b.txt"),
        ("a/b\\c", "c"),
        ("folder/", "folder"),
        ("..", None),
        (" \n", None),
        ("a\nb\t.txt", "a b.txt"),
        ("n" * 256, "n" * 255),
        (None, None),
    ],
)
def test_q13_an_attachment_keeps_its_base_name(name: str | None, kept: str | None) -> None:
    assert clean_file_name(name) == kept


def test_q14_q15_p5_foreign_keys_and_inner_quotes_are_left_behind() -> None:
    ref = quoted(
        content="outer",
        url="https://x.invalid/secret",
        reply_to={"content": "inner"},
        attachments=[{"kind": "file", "name": "a", "url": "u", "token": "t", "downloadCode": "d"}],
    )
    assert ref == ReplyReference(
        content="outer",
        attachments=(QuotedAttachment(kind="file", name="a"),),
        explicit_text=True,
        source="payload",
    )


def test_q16_absent_ids_and_names_stay_absent() -> None:
    ref = quoted(content="x", message_id=" ", author_id=None, author_name="\u200b")
    assert (ref.message_id, ref.author_id, ref.author_name) == (None, None, None)


@pytest.mark.parametrize("reason", ["invented-reason", None, 5])
def test_q17_nothing_readable_and_no_known_reason_is_not_delivered(reason: object) -> None:
    assert quoted(unavailable_reason=reason).unavailable_reason == "not-delivered"


def test_a_known_reason_stays_and_is_dropped_where_something_is_readable() -> None:
    assert quoted(unavailable_reason="deleted").unavailable_reason == "deleted"
    assert quoted(unavailable_reason="deleted", content="x").unavailable_reason is None
    assert quoted(unavailable_reason="deleted", attachments=[{"kind": "image"}]).unavailable_reason is None


def test_q18_an_image_alone_is_described_and_has_no_reason() -> None:
    ref = quoted(attachments=[{"kind": "image"}])
    assert (ref.attachments, ref.unavailable_reason, ref.content) == ((QuotedAttachment(kind="image"),), None, None)


def test_a_pending_lookup_has_no_reason_yet_and_ends_where_content_is_there() -> None:
    wanted = Lookup(via="platform", chat_id="C", message_id="1")
    assert reference_from_parts({"message_id": "1"}, lookup=wanted).unavailable_reason is None
    assert reference_from_parts({"message_id": "1"}, lookup=wanted).needs_lookup
    assert not reference_from_parts({"content": "x"}, lookup=wanted).needs_lookup


def test_one_line_fields_collapse_white_space() -> None:
    assert clean_line(" a\r\nb\u2028c \u3000 d\u0000 ") == "a b c d"
    assert quoted(author_name="x" * 257, content="x").author_name == "x" * 256
    assert quoted(message_id="i" * 257).message_id == "i" * 256
    assert quoted(message_id=7522826308586307625).message_id == "7522826308586307625"


def test_wrong_types_are_absent() -> None:
    ref = quoted(
        message_id=True, author_id=1.5, author_name=["x"], content=3, attachments="file", unavailable_reason=[]
    )
    assert ref == ReplyReference(unavailable_reason="not-delivered")
    assert quoted(attachments=[1, {"kind": 2, "name": 3}]).attachments == (QuotedAttachment(kind="other"),)


def test_f19_no_text_gives_an_empty_explicit_text() -> None:
    assert explicit_text(quoted(attachments=[{"kind": "image"}])) == ""
    assert explicit_text(ReplyReference(content="a title", explicit_text=False)) == ""


def test_f13_text_in_the_payload_is_explicit() -> None:
    assert explicit_text(quoted(content="明天十点开会")) == "明天十点开会"


def test_f14_white_space_is_no_text() -> None:
    ref = quoted(content=" \n\u3000\u200b")
    assert (explicit_text(ref), ref.content, ref.unavailable_reason) == ("", None, "not-delivered")


@given(st.text(st.characters(exclude_categories=())), st.text(st.characters(exclude_categories=())))
def test_any_unicode_comes_out_within_the_rules(content: str, name: str) -> None:
    ref = clean_reference(ReplyReference(content=content, author_name=name, message_id=name))
    text = (ref.content or "") + (ref.author_name or "")
    assert not {ord(c) for c in text} & set(REMOVED)
    assert "\n" not in (ref.author_name or "")
    assert (ref.content is None) == (ref.unavailable_reason == "not-delivered")
    text.encode()
