"""Fixed texts by name and language."""

import re
from typing import get_args

import pytest

from shared.texts import LANGUAGES, NAMES, TEXTS, TextName, chosen_language, text

SENTENCE = "无法读取被引用文字，请复制原文后再提问。"


@pytest.mark.parametrize("language", ["zh", "en", "auto"])
def test_f2_the_evidence_only_sentence_is_exact_and_the_default_everywhere(language: str) -> None:
    assert text("quoted_text_unavailable", language, "what is this", {}) == SENTENCE


def test_q32_the_batch_notice_names_what_is_not_collected() -> None:
    for language in LANGUAGES:
        assert "图片、文件或引用消息" in text("batch_not_collected", language, "", {})


def test_the_set_of_names_is_closed_and_every_one_has_both_languages() -> None:
    assert frozenset(get_args(TextName)) == NAMES
    for name, by_language in TEXTS.items():
        assert set(by_language) == {"zh", "en"}, name
        assert all(by_language.values()), name


def test_both_languages_have_the_same_placeholders() -> None:
    for name, by_language in TEXTS.items():
        zh, en = (set(re.findall(r"\{[a-z_]+\}", by_language[language])) for language in LANGUAGES)
        assert zh == en, name


@pytest.mark.parametrize(
    ("language", "message", "chosen"),
    [
        ("auto", "hello", "en"),
        ("auto", "", "en"),
        ("auto", "hello 世", "zh"),
        ("auto", "𠀀", "zh"),
        ("auto", "héllo 🙂 привет", "en"),
        ("zh", "hello", "zh"),
        ("en", "你好", "en"),
    ],
)
def test_the_language_is_the_accounts_or_the_messages(language: str, message: str, chosen: str) -> None:
    assert chosen_language(language, message) == chosen


def test_an_override_counts_for_its_language_only() -> None:
    overrides = {"denied": {"en": "No."}}
    assert text("denied", "en", "", overrides) == "No."
    assert text("denied", "zh", "", overrides) == TEXTS["denied"]["zh"]


def test_an_empty_override_says_nothing() -> None:
    assert text("denied", "en", "", {"denied": {"en": ""}}) == ""


def test_values_fill_placeholders_and_are_never_read_as_templates() -> None:
    assert text("unsupported_part", "en", "", {}, kind="image", name="{kind}.png") == "[image: {kind}.png]"
    assert text("batch_full", "en", "", {}, count=10).startswith("10 messages")


def test_a_placeholder_without_a_value_and_other_braces_stay() -> None:
    overrides = {"denied": {"en": "{nobody} {0} {a.b} {{count}}"}}
    assert text("denied", "en", "", overrides, count=3) == "{nobody} {0} {a.b} {3}"


def test_help_names_every_command_that_works_and_no_other() -> None:
    for language in LANGUAGES:
        assert re.findall(r"/([a-z]+)", text("help", language, "", {})) == ["help", "new", "status", "stop"]
