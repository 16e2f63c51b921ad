"""Configuration files with anything wrong in them: a `Settings` or lines that say what to do; no secret is repeated."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.settings import ConfigurationError, Settings, from_mapping, load, problems, shared_part, with_shared_part
from shared.settings_errors import leaves
from tests.abuse.hostile import any_json, any_text, examples, mutations, outcome, spoilt

ROOT = Path(__file__).parents[2]
EXAMPLE = (ROOT / "millstream.example.toml").read_bytes()
SECRET = "sesame-0f1e2d3c"
RICH: dict[str, Any] = {
    "redis": {"url": f"redis://:{SECRET}@127.0.0.1:6379/0"},
    "harness": {"kind": "openai", "url": "http://127.0.0.1:9/v1", "api_key": SECRET, "model": "m"},
    "harnesses": {"research": {"kind": "http", "url": "http://127.0.0.1:9/turns", "secret": SECRET}},
    "texts": {"help": {"en": "Ask me."}},
    "accounts": [
        {
            "id": "tg", "channel": "telegram", "self_id": "1", "owners": ["1"], "members": ["2"],
            "credentials": {"token": SECRET, "secret": SECRET}, "engagement": {"engine": False},
        },
        {"id": "sl", "channel": "slack", "credentials": {"token": SECRET, "signing_secret": SECRET}},
    ],
    "routes": [{"account": "tg", "chat_type": "group", "harness": "research"}],
    "pipeline": {"retry": {"attempts": 3}, "lane_max": 5},
    "log": {"level": "info"},
}  # fmt: skip
RICH_TOML = b"""
[harness]
kind = "openai"
url = "http://127.0.0.1:9/v1"
api_key = "sesame-0f1e2d3c"
[[accounts]]
id = "tg"
channel = "telegram"
owners = ["1"]
credentials = { token = "sesame-0f1e2d3c", secret = 'sesame-0f1e2d3c' }
[[routes]]
account = "tg"
[texts]
help.en = "Ask me."
"""
TOML_SPLICES = [
    b"[" * 5000, b"{a=" * 2000, b"a." * 3000, b"9" * 5000, b"0x" + b"f" * 5000, b"1e9999", b"nan", b"-inf",
    b"1979-99-99", b"24:61:61", b'"""', b"'''", b'"\\u0000"', b'"file:\\u0000"', b'"file:/"', b'"\\ud800"', b"\r",
    b"a = 1\na = 2\n", b"[accounts]\n", b"[[harness]]\n", b"[redis.url.x]\n", b'"" = 1\n', b"\xe2\x80\xae", b"# \x01\n",
    b"file:/nonexistent", b"true", b"[]", b"{}",
]  # fmt: skip


def checked(work: Any, secret: bool = True) -> Settings | None:
    """The settings, or None where they were refused in words that repeat no secret."""
    settings = outcome(ConfigurationError, work)
    if isinstance(settings, ConfigurationError):
        assert settings.errors
        assert all(line.strip() for line in settings.errors)
        assert not secret or SECRET not in str(settings)
        assert settings.__cause__ is None
        return None
    assert isinstance(settings, Settings)
    assert not secret or SECRET not in repr(settings).replace(f"redis://:{SECRET}@", "")
    for problem in problems(settings):
        assert SECRET not in f"{problem.text}{problem.fix}"
    return settings


@given(st.data())
@examples(300)
def test_a_file_with_anything_in_it_is_read_or_refused(tmp_path_factory: Any, data: st.DataObject) -> None:
    raw = data.draw(st.sampled_from([RICH_TOML, EXAMPLE]))
    for _ in range(data.draw(st.integers(1, 2))):
        at = data.draw(st.integers(0, len(raw)))
        raw = raw[:at] + data.draw(st.sampled_from(TOML_SPLICES)) + raw[at + data.draw(st.integers(0, 3)) :]
    raw = data.draw(st.just(raw) | spoilt(raw) | st.binary(max_size=60))
    file = tmp_path_factory.getbasetemp() / "fuzzed.toml"
    file.write_bytes(raw)
    checked(lambda: load(file, {}))


@given(mutations(RICH))
@examples(400)
def test_values_of_any_kind_anywhere_are_settings_or_refused(data: Any) -> None:
    if not isinstance(data, dict):
        return
    settings = checked(lambda: from_mapping(data), secret=False)
    if settings is not None:
        again = with_shared_part(settings, shared_part(settings))
        assert shared_part(again) == shared_part(settings)


@given(mutations(RICH))
@examples(200)
def test_a_shared_part_of_any_kind_is_taken_or_refused(data: Any) -> None:
    if isinstance(data, dict):
        checked(lambda: with_shared_part(from_mapping(RICH), data), secret=False)


VARIABLES = ["MILLSTREAM_" + path.replace("[]", "__0").replace(".", "__").upper() for path in leaves(Settings)]
OTHERS = [
    "MILLSTREAM_", "MILLSTREAM_ACCOUNTS", "MILLSTREAM_ACCOUNTS__TG", "MILLSTREAM_ACCOUNTS__" + "9" * 5000,
    "MILLSTREAM_ACCOUNTS__٣", "MILLSTREAM_ACCOUNTS__²", "MILLSTREAM_ACCOUNTS__TG__CREDENTIALS", "MILLSTREAM_ROUTES__0",
    "MILLSTREAM_HARNESSES__RESEARCH__URL", "MILLSTREAM_REDIS", "MILLSTREAM_REDIS__URL__X", "MILLSTREAM_TEXTS__HELP",
    "MILLSTREAM_____", "MILLSTREAM_ACCOUNTS____TG", "MILLSTREAM_SECRETS_DIR",
]  # fmt: skip
VALUES = st.sampled_from(
    [
        "", "0", "[]", "{}", "[" * 5000, '{"a":' * 5000, "[" + "9" * 5000 + "]", "9" * 5000, "nan", "file:", "file:/",
        "file:" + "x" * 5000, "file:/nonexistent", '{"id": 5}', '["a"]', "\udcff", '{"x": {"y": {}}}', "null",
        "/nonexistent", "/", "true",
    ]
)  # fmt: skip
# The system itself lets no NUL and no half of a surrogate pair into an environment, other than as a stray byte.
WORDS = VALUES | any_text.map(lambda text: text.replace("\x00", "").encode("utf-8", "replace").decode())


@given(st.dictionaries(st.sampled_from(VARIABLES) | st.sampled_from(OTHERS), WORDS, max_size=4))
@examples(400)
def test_an_environment_with_anything_in_it_is_read_or_refused(tmp_path_factory: Any, env: dict[str, str]) -> None:
    file = tmp_path_factory.getbasetemp() / "base.toml"
    for base in (RICH_TOML, b"accounts = 5\nroutes = {}\nharness = []\n"):
        file.write_bytes(base)
        checked(lambda: load(file, env))


@pytest.mark.parametrize(
    "text",
    [
        '[harness]\napi_key = "file:\\u0000"', "a = " + "[" * 100_000, "a = " + "9" * 100_000, "a." * 3000 + "b = 1",
        "accounts = 5", "accounts = [5]", "routes = {}", '[[accounts]]\nid = "x"\nchannel = "mock"\nowners = [1e400]',
        "[texts]\nhelp = " + "{a = " * 3000, '[redis]\nurl = "redis://[::1"', '[redis]\nurl = "redis://h:99999999"',
        '[presence]\ntext = "\\u0000"', '[harness]\nurl = "http://[::1"', "[pipeline]\nlane_max = 9223372036854775808",
        "[pipeline]\nretry = { attempts = 1e308 }", "[harness]\ntimeout_s = 1e308", "[harness]\ntimeout_s = nan",
    ],
)  # fmt: skip
def test_a_file_that_python_itself_stumbles_on_is_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "millstream.toml"
    file.write_text(text)
    checked(lambda: load(file, {}))


@pytest.mark.parametrize("raw", [b"\x00" * 10, b"\xff\xfe", b"x" * 5_000_000, b"sesame-0f1e2d3c", b"file:/etc/\x00"])
def test_a_secret_file_holds_anything(raw: bytes, tmp_path: Path) -> None:
    held = tmp_path / "held"
    held.mkdir()
    (held / "MILLSTREAM_HARNESS__API_KEY").write_bytes(raw)
    checked(lambda: load(None, {"MILLSTREAM_SECRETS_DIR": str(held)}))
    file = tmp_path / "millstream.toml"
    file.write_text(f'[harness]\napi_key = "file:{held}/MILLSTREAM_HARNESS__API_KEY"')
    checked(lambda: load(file, {}))


@given(any_json)
@examples(100)
def test_a_configuration_that_is_no_table_of_tables_is_refused(value: Any) -> None:
    checked(lambda: from_mapping({"accounts": value, "harness": value}), secret=False)
