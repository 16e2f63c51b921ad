"""Loading: file, secret files, environment; the shared part; scenario defaults."""

import json
from pathlib import Path

import pytest

from shared.settings import (
    ConfigurationError,
    Settings,
    from_mapping,
    load,
    scenario_account_defaults,
    scenario_defaults,
    scenario_mapping,
    shared_part,
    with_shared_part,
)

FILE = """
paused = true
[redis]
url = "redis://one:6379/0"
[pipeline]
lane_max = 7
retry = {attempts = 2, max_s = 9}
[harnesses.Slow-1]
kind = "http"
url = "https://slow.example/turns"
[[accounts]]
id = "tg.main"
channel = "telegram"
owners = ["1"]
credentials = {secret = "from-file"}
[[accounts]]
id = "sl"
channel = "slack"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "millstream.toml"
    path.write_text(FILE, encoding="utf-8")
    return path


def test_without_a_file_the_defaults_hold() -> None:
    assert load(None, {}) == from_mapping({})


def test_the_file_is_read(file: Path) -> None:
    settings = load(file, {})
    assert (settings.paused, settings.pipeline.lane_max, settings.pipeline.retry.attempts) == (True, 7, 2)
    assert settings.harness_named("Slow-1").kind == "http"
    assert [account.id for account in settings.accounts] == ["tg.main", "sl"]


def test_the_environment_wins_key_by_key(file: Path) -> None:
    settings = load(
        file,
        {
            "MILLSTREAM_PAUSED": "false",
            "MILLSTREAM_REDIS__URL": "redis://two:6379/0",
            "millstream_pipeline__retry__attempts": "4",
            "MILLSTREAM_ENGAGEMENT__TRIGGER_WORDS": '["relay", "中继"]',
            "MILLSTREAM_INDEX": '{"pages": 1}'.replace("pages", "max_entries"),
            "MILLSTREAM_HARNESSES__SLOW_1__API_KEY": "12345",
            "UNRELATED": "x",
        },
    )
    assert (settings.paused, settings.redis.url, settings.pipeline.lane_max) == (False, "redis://two:6379/0", 7)
    assert (settings.pipeline.retry.attempts, settings.pipeline.retry.max_s) == (4, 9)
    assert settings.engagement.trigger_words == ("relay", "中继")
    assert settings.index.max_entries == 1
    assert list(settings.harnesses) == ["Slow-1"]
    assert settings.harness_named("Slow-1").api_key.get_secret_value() == "12345"


def test_a_single_account_is_reached_by_number_or_id(file: Path) -> None:
    settings = load(
        file,
        {
            "MILLSTREAM_ACCOUNTS__TG_MAIN__CREDENTIALS__TOKEN": "123456",
            "MILLSTREAM_ACCOUNTS__0__OWNERS": '["7", "8"]',
            "MILLSTREAM_ACCOUNTS__1__ENGAGEMENT__ENGINE": "true",
        },
    )
    first, second = settings.accounts
    assert (first.credential("token"), first.credential("secret")) == ("123456", "from-file")
    assert first.owners == ("7", "8")
    assert second.engagement.engine is True


def test_all_accounts_can_come_from_the_environment() -> None:
    settings = load(None, {"MILLSTREAM_ACCOUNTS": '[{"id": "a", "channel": "mock"}]'})
    assert settings.accounts[0].channel == "mock"


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("MILLSTREAM_REDIS_URL", "x", ["MILLSTREAM_REDIS_URL", 'did you mean "MILLSTREAM_REDIS__URL"?']),
        ("MILLSTREAM_REDIS__ULR", "x", ["`redis.ulr`", 'did you mean "url"?']),
        ("MILLSTREAM_ACCOUNTS", "[{", ["MILLSTREAM_ACCOUNTS", "not valid JSON"]),
        ("MILLSTREAM_INGEST__PORT", "many", ["`ingest.port`", "must be a valid integer"]),
        ("MILLSTREAM_ACCOUNTS__9__SELF_ID", "x", ["`accounts`", "named 9"]),
        ("MILLSTREAM_ACCOUNTS__NOBODY__SELF_ID", "x", ["`accounts`", "named nobody"]),
    ],
)
def test_faults_of_the_environment_are_named(file: Path, name: str, value: str, words: list[str]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(file, {name: value})
    (line,) = caught.value.errors
    assert all(word in line for word in words)


def test_what_kubernetes_sets_for_a_service_named_millstream_is_passed_over() -> None:
    settings = load(
        None,
        {
            "MILLSTREAM_PORT": "tcp://10.0.0.1:8080",
            "MILLSTREAM_SERVICE_HOST": "10.0.0.1",
            "MILLSTREAM_INGEST_PORT_8080_TCP_ADDR": "10.0.0.1",
            "MILLSTREAM_INGEST_SERVICE_PORT_HTTP": "8080",
            "MILLSTREAM_CONFIG": "other.toml",
        },
    )
    assert settings == from_mapping({})


def test_secret_files_lie_between_file_and_environment(file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "secrets"
    folder.mkdir()
    (folder / "MILLSTREAM_HARNESS__API_KEY").write_text("key-of-a-file\n")
    (folder / "MILLSTREAM_JUDGE__API_KEY").write_text("judge-of-a-file")
    (folder / "MILLSTREAM_ACCOUNTS__TG_MAIN__CREDENTIALS__SECRET").write_text("secret-of-a-file\n")
    (folder / "README").write_text("not ours")
    settings = load(file, {"MILLSTREAM_SECRETS_DIR": str(folder), "MILLSTREAM_JUDGE__API_KEY": "judge-of-env"})
    assert settings.harness.api_key.get_secret_value() == "key-of-a-file"
    assert settings.judge.api_key.get_secret_value() == "judge-of-env"
    assert settings.accounts[0].credential("secret") == "secret-of-a-file"


def test_a_missing_folder_of_secrets_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="MILLSTREAM_SECRETS_DIR"):
        load(None, {"MILLSTREAM_SECRETS_DIR": str(tmp_path / "nowhere")})


def test_a_secret_can_name_its_file(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("  file:/not/followed\n", encoding="utf-8")
    (tmp_path / "key").write_text("k\n", encoding="utf-8")
    path = tmp_path / "millstream.toml"
    path.write_text(
        f'[harness]\napi_key = "file:{tmp_path}/key"\n[engagement]\nactive_s = 5\n'
        f'[[accounts]]\nid = "a"\nchannel = "mock"\ncredentials = {{token = "file:{tmp_path}/token"}}\n',
        encoding="utf-8",
    )
    settings = load(path, {})
    assert settings.harness.api_key.get_secret_value() == "k"
    assert settings.accounts[0].credential("token") == "file:/not/followed"
    assert settings.accounts[0].engagement.active_s == 5


def test_a_secrets_file_that_is_not_there_is_named_with_its_key(tmp_path: Path) -> None:
    missing = tmp_path / "nowhere"
    with pytest.raises(ConfigurationError) as caught:
        load(None, {"MILLSTREAM_ACCOUNTS": json.dumps(
            [{"id": "a", "channel": "mock", "credentials": {"token": f"file:{missing}"}}]
        )})  # fmt: skip
    (line,) = caught.value.errors
    assert line.startswith(f"`accounts[0].credentials.token`: cannot read {missing}")


def test_a_syntax_error_names_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "millstream.toml"
    path.write_text("[redis]\nurl = 'x'\nprefix ms\n", encoding="utf-8")
    with pytest.raises(ConfigurationError) as caught:
        load(path, {})
    assert caught.value.errors[0].startswith(f"{path}:3: is not valid TOML")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read"):
        load(tmp_path / "nowhere.toml", {})


def whole() -> Settings:
    return from_mapping(
        {
            "read_only": True,
            "redis": {"url": "redis://one:6379/0"},
            "ingest": {"port": 1234, "batch_max": 3},
            "metrics": {"port": 1},
            "log": {"level": "debug"},
            "admin": {"operator_token": "s3cret-admin"},
            "storage": {"encryption_key_file": "key"},
            "harness": {"api_key": "s3cret-key"},
            "engagement": {"active_s": 5},
            "accounts": [
                {
                    "id": "a",
                    "channel": "slack",
                    "credentials": {"token": "s3cret-token"},
                    "engagement": {"engine": True},
                }
            ],
            "routes": [{"chat": "c", "engagement": {"cooldown_s": 1}}],
        }
    )


def test_the_shared_part_leaves_out_what_stays_with_the_process() -> None:
    shared = shared_part(whole())
    assert not {"redis", "metrics", "log", "admin", "storage"} & set(shared)
    assert shared["ingest"] == {"batch_max": 3}
    assert shared["accounts"][0]["credentials"] == {"token": "s3cret-token"}
    assert shared["accounts"][0]["engagement"] == {"engine": True}
    assert json.loads(json.dumps(shared)) == shared


def test_the_shared_part_of_one_process_is_the_configuration_of_another() -> None:
    other = from_mapping(
        {"redis": {"url": "redis://two:6379/0"}, "ingest": {"host": "127.0.0.2", "batch_max": 9}, "paused": True}
    )
    followed = with_shared_part(other, shared_part(whole()))
    assert (followed.redis.url, followed.ingest.host, followed.ingest.port) == ("redis://two:6379/0", "127.0.0.2", 8080)
    assert (followed.ingest.batch_max, followed.paused, followed.read_only) == (3, False, True)
    assert followed.admin.operator_token.get_secret_value() == ""
    assert followed.accounts == whole().accounts
    assert followed.routes == whole().routes
    assert with_shared_part(whole(), shared_part(whole())) == whole()


def test_process_settings_in_a_stored_version_are_passed_over() -> None:
    followed = with_shared_part(from_mapping({}), {"redis": {"url": "redis://evil"}, "ingest": {"port": 9}})
    assert followed == from_mapping({})


def test_scenario_defaults() -> None:
    settings = from_mapping(
        scenario_mapping(
            {
                "harness": {"timeout_s": 3},
                "harnesses": {"slow": {}},
                "accounts": [{"id": "a", "channel": "mock"}, {"id": "b", "channel": "mock", "join_s": 2}],
            }
        )
    )
    assert (settings.harness.failure_notice, settings.harness.timeout_s, settings.notices.queued) == ("", 3, "")
    assert settings.harnesses["slow"].failure_notice == ""
    assert [(a.join_s, a.ack, a.language) for a in settings.accounts] == [(0, "none", "zh"), (2, "none", "zh")]
    assert from_mapping(scenario_defaults()).judge.kind == "none"
    assert scenario_account_defaults() == {"join_s": 0, "ack": "none", "language": "zh"}
