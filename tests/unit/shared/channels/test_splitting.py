"""Answers cut to size: nothing lost, nothing too long, no grapheme or fence broken, no own block sent."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.channels.port import Limits, Part
from shared.channels.splitting import Unit, cut_blocks, is_boundary, plan_parts, split, width

FAMILY = "👨‍👩‍👧‍👦"
SCOTLAND = "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f"
GRAPHEMES = ["é", "ạ̈", FAMILY, "🇩🇪", "👍🏽", "❤️", SCOTLAND, "각", "한", "नि", "1️⃣", "a", "字", "🛟"]
UNITS: list[Unit] = ["code_points", "utf16", "utf8"]


def limits(units: int, unit: Unit = "code_points") -> Limits:
    return Limits(units, unit, (1, 1.0), (1, 1.0), 1)


def planned(text: str, units: int = 4096) -> list[str]:
    return [part.text for part in plan_parts([Part("text", text=text)], limits(units), lambda text: text)]


def squeezed(text: str) -> str:
    return "".join(text.split())


@given(st.text(st.characters(exclude_characters="`~", codec="utf-8"), max_size=400), st.integers(1, 60))
@settings(max_examples=300, deadline=None)
def test_pieces_joined_are_the_text_up_to_white_space(text: str, limit: int) -> None:
    for unit in UNITS:
        pieces = split(text, max(limit, 4), unit)
        assert squeezed("".join(pieces)) == squeezed(text)
        assert all(0 < width(piece, unit) <= max(limit, 4) for piece in pieces)
        for piece in pieces:
            piece.encode()


@given(st.lists(st.sampled_from(GRAPHEMES), max_size=80), st.integers(16, 60), st.sampled_from(UNITS))
@settings(max_examples=300, deadline=None)
def test_graphemes_stay_whole(graphemes: list[str], limit: int, unit: Unit) -> None:
    pieces = split("".join(graphemes), max(limit, 28), unit)
    left = iter(graphemes)
    for piece in pieces:
        built = ""
        while built != piece:
            built += next(left)
            assert piece.startswith(built), "a grapheme was cut"


@pytest.mark.parametrize("grapheme", GRAPHEMES, ids=lambda text: "-".join(f"{ord(c):x}" for c in text))
def test_no_boundary_inside_a_grapheme(grapheme: str) -> None:
    for index in range(1, len(grapheme)):
        assert not is_boundary(grapheme, index)
    for after in GRAPHEMES:
        if grapheme == after == "🇩🇪" or grapheme != after:
            assert is_boundary(grapheme + after, len(grapheme))


def test_a_grapheme_longer_than_the_limit_is_cut_between_code_points() -> None:
    pieces = split("a" + "\u0301" * 100, 30, "utf16")
    assert "".join(pieces) == "a" + "\u0301" * 100
    assert all(len(piece) <= 30 for piece in pieces)


def test_cuts_prefer_paragraphs_then_lines_then_sentences_then_words() -> None:
    assert split("aaaa aaaa\n\nbbbb\nbbbb bb", 18, "code_points") == ["aaaa aaaa", "bbbb\nbbbb bb"]
    assert split("aaaa. aaaa\nbbbb bb bb bb", 16, "code_points") == ["aaaa. aaaa", "bbbb bb bb bb"]
    assert split("aaaa aaaa. bb bbbb", 16, "code_points") == ["aaaa aaaa.", "bb bbbb"]
    assert split("潮汐表在这里。请看一下吧", 10, "code_points") == ["潮汐表在这里。", "请看一下吧"]
    assert split("aaaa bbbb cccc", 11, "code_points") == ["aaaa bbbb", "cccc"]
    assert split("aaaabbbbcccc", 8, "code_points") == ["aaaabbbb", "cccc"]


def test_a_text_at_the_limit_is_one_piece() -> None:
    assert split("x" * 4096, 4096, "utf16") == ["x" * 4096]
    assert [len(piece) for piece in split("🛟" * 2049, 4096, "utf16")] == [2048, 1]


def test_a_code_fence_that_is_cut_is_closed_and_opened_again() -> None:
    code = "\n".join(f"    line {n:03}" for n in range(60))
    pieces = split(f"See:\n```python\n{code}\n```\nDone.", 300, "code_points")
    assert len(pieces) > 2
    for piece in pieces:
        assert piece.count("```") % 2 == 0
        assert len(piece) <= 300
    for piece in pieces[1:]:
        assert piece.startswith("```python\n    line ")
    lines = [line for piece in pieces for line in piece.split("\n") if "line" in line]
    assert lines == code.split("\n")


@given(st.text(st.sampled_from("`~ \nab"), max_size=1500))
@settings(max_examples=200, deadline=None)
def test_any_fences_keep_the_limit_and_the_letters(text: str) -> None:
    pieces = split(text, 200, "code_points")
    assert all(len(piece) <= 200 for piece in pieces)
    letters = [c for c in "".join(pieces) if c in "ab"]
    assert len(letters) >= sum(c in "ab" for c in text)


def test_p6_own_blocks_are_cut_out() -> None:
    block = '<dsh_im_reply_to>{"note":"x","content":"secret"}</dsh_im_reply_to>'
    assert planned(f"{block}\n\n好的") == ["好的"]
    assert planned(f"before {block} after {block}") == ["before  after"]
    assert planned(f'<dsh_im_source>{{"a":1}}</dsh_im_source>{block}') == []


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("<think>hm\nhm</think>\n\nyes", "yes"),
        ("a<think>b</think>c<think>d</think>e", "ace"),
        ("<think>never ends", ""),
        ("  \n<think>never ends", ""),
        ("hm, let me see\n</think>\n\nyes", "yes"),
        ("</think>yes", "</think>yes"),
        ("close it with </think> there", "close it with </think> there"),
        ("open <think> here", "open <think> here"),
        ("<dsh_im_files>[never ends\nyes", "yes"),
        ("yes</dsh_im_files>", "yes"),
        ("<dsh_im_files><think>a</dsh_im_files>b</think>c", "b</think>c"),
        ("<dsh_other>x</dsh_other>", "<dsh_other>x</dsh_other>"),
    ],
)
def test_p6_reasoning_and_stray_tags(text: str, left: str) -> None:
    assert cut_blocks(text) == left


@given(st.text(max_size=200))
def test_an_answer_without_tags_is_only_trimmed(text: str) -> None:
    if "<" not in text:
        assert cut_blocks(text) == text.strip()


def test_many_tags_take_linear_time() -> None:
    opened = "".join(f"<dsh_im_{n}>" for n in range(50_000))
    assert cut_blocks(opened) == ""
    assert cut_blocks("<think>" * 100_000) == ""
    assert cut_blocks("</think>" * 100_000 + "x").endswith("x")


def test_empty_parts_are_dropped_and_others_named() -> None:
    parts = [
        Part("text", text=" \n "),
        Part("image", name="tide\n table.png", ref="https://example.invalid/x"),
        Part("text", text="hello"),
        Part("file"),
    ]
    texts = [part.text for part in plan_parts(parts, limits(100), str.upper)]
    assert texts == ["[image: tide table.png]", "HELLO", "[file]"]
    assert all(part.kind == "text" and part.ref is None for part in plan_parts(parts, limits(100), str.upper))


def test_where_replies_are_counted_many_parts_become_few_long_ones() -> None:
    bound = Limits(10, "code_points", (1, 1.0), (1, 1.0), 1, replies=4)
    parts = [Part("text", text=text) for text in ("aa", "bb", "cc", "dd")]
    assert [part.text for part in plan_parts(parts[:3], bound, str)] == ["aa", "bb", "cc"]
    assert [part.text for part in plan_parts(parts, bound, str)] == ["aa\n\nbb\n\ncc", "dd"]


def test_lone_halves_of_surrogate_pairs_never_leave() -> None:
    assert planned("a\ud83d") == ["a\ufffd"]
    assert planned("\ud83d\udedf") == ["🛟"]
