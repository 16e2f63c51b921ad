"""Markdown into visible text with styles, and into Slack's notation."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.channels.markup import Span, parse, plain
from shared.channels.slack.outbound import mrkdwn


@pytest.mark.parametrize(
    ("markdown", "text", "spans"),
    [
        ("plain & <b>", "plain & <b>", ()),
        ("**bold** and *slanted*", "bold and slanted", (Span("bold", 0, 4), Span("italic", 9, 16))),
        ("~~old~~ `x = *y*`", "old x = *y*", (Span("strikethrough", 0, 3), Span("code", 4, 11))),
        ("# Title **x**", "Title x", (Span("bold", 0, 7), Span("bold", 6, 7))),
        ("**a *b* c**", "a b c", (Span("bold", 0, 5), Span("italic", 2, 3))),
        ("[tide](https://example.invalid/a?b=1)", "tide", (Span("link", 0, 4, "https://example.invalid/a?b=1"),)),
        ("```python\nx = 1\n\n```\nend", "x = 1\n\nend", (Span("pre", 0, 6, "python"),)),
        (r"2 \* 3", "2 * 3", ()),
    ],
)
def test_styles(markdown: str, text: str, spans: tuple[Span, ...]) -> None:
    assert (parse(markdown).text, parse(markdown).spans) == (text, spans)


@pytest.mark.parametrize(
    "text",
    [
        "2 * 3 * 4", "snake_case_name", "__init__", "**open", "a ** b ** c", "`open", "```\nopen fence",
        "[x](relative)",
        "[x](javascript:alert(1))", "#hashtag", "- item\n- item", "1. one", "> quoted", "C:\\dir\\new", "~~", "****",
        "```\n```", "|a|b|\n|-|-|", "x[0](y)", "*", "你好*世界", "#", "a*b*c",
    ],
)  # fmt: skip
def test_what_is_no_markup_stays(text: str) -> None:
    assert parse(text).text == text
    assert parse(text).spans == ()


@given(st.text(st.sampled_from("*_`~[]()#\\ \nab你🛟"), max_size=200))
@settings(max_examples=500, deadline=None)
def test_visible_text_is_never_longer_and_spans_lie_inside(markdown: str) -> None:
    styled = parse(markdown)
    assert len(styled.text) <= len(markdown)
    assert [c for c in markdown if c in "ab你🛟" and "```" not in markdown] == [
        c for c in styled.text if c in "ab你🛟" and "```" not in markdown
    ]
    for span in styled.spans:
        assert 0 <= span.start < span.end <= len(styled.text)


@pytest.mark.parametrize(
    ("markdown", "written"),
    [
        ("**bold** *it* ~~no~~ `c<d`", "*bold* _it_ ~no~ `c&lt;d`"),
        ("[a|b > c](https://example.invalid/?a=1&b=2)", "<https://example.invalid/?a=1&amp;b=2|a|b &gt; c>"),
        ("```sh\nls <x>\n```", "```\nls &lt;x&gt;\n```"),
        ("<!channel> <@U07CLEO0003> <#C1> & @here", "&lt;!channel&gt; &lt;@U07CLEO0003&gt; &lt;#C1&gt; &amp; @here"),
        ("**<!everyone>**", "*&lt;!everyone&gt;*"),
    ],
)
def test_slack_notation_pings_nobody(markdown: str, written: str) -> None:
    assert mrkdwn(markdown) == written


@given(st.text(st.sampled_from("*`~[]()<>!@#&|\nhere"), max_size=100))
@settings(max_examples=300, deadline=None)
def test_slack_never_gets_a_ping(markdown: str) -> None:
    written = mrkdwn(markdown)
    assert not any(mark in written for mark in ("<!", "<@", "<#"))


def test_long_lines_of_markers_take_no_time() -> None:
    for text in ("**a" * 1365, "*a " * 1365, "`" * 4096, "[" * 4096, "~~a" * 1365, "[a](https://" * 340):
        assert parse(text).text


def test_without_styles_a_link_keeps_its_address() -> None:
    assert plain("# Hi\n**a** `b` [c](https://d.invalid/) <https://e.invalid>") == (
        "Hi\na b c (https://d.invalid/) <https://e.invalid>"
    )
