"""What `millstream check` says."""

from typing import Any

import pytest

from shared.settings import from_mapping, problems


def found(data: dict[str, Any]) -> set[tuple[str, str]]:
    return {(problem.severity, problem.path) for problem in problems(from_mapping(data))}


def of_account(**keys: Any) -> set[tuple[str, str]]:
    return found({"accounts": [{"id": "a", **keys}]})


def test_a_mock_account_on_the_echo_harness_has_no_problem() -> None:
    assert of_account(channel="mock") == set()


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"harness": {"kind": "openai"}}, {("error", "harness.url"), ("error", "harness.model")}),
        ({"harness": {"kind": "http"}}, {("error", "harness.url"), ("warning", "harness.secret")}),
        ({"harness": {"kind": "http", "url": "https://h.example", "secret": "s"}}, set()),
        ({"harnesses": {"x": {"kind": "openai", "url": "https://h.example"}}}, {("error", "harnesses.x.model")}),
        ({"judge": {"kind": "openai"}}, {("error", "judge.url"), ("error", "judge.model")}),
        ({"judge": {"kind": "http"}}, {("error", "judge.url")}),
        ({"stt": {"url": "https://s.example"}}, {("error", "stt.model")}),
    ],
)
def test_models_need_their_address(data: dict[str, Any], expected: set[tuple[str, str]]) -> None:
    assert found({**data, "accounts": [{"id": "a", "channel": "mock"}]}) == expected


def test_a_telegram_webhook_needs_its_secret_and_its_token() -> None:
    assert of_account(channel="telegram") == {
        ("error", "accounts[0].credentials.secret"),
        ("error", "accounts[0].credentials.token"),
    }
    assert of_account(channel="telegram", credentials={"secret": "s", "token": "t"}) == set()


def test_a_slack_webhook_needs_its_signing_secret_and_its_token() -> None:
    assert of_account(channel="slack") == {
        ("error", "accounts[0].credentials.signing_secret"),
        ("error", "accounts[0].credentials.token"),
    }
    assert of_account(channel="slack", credentials={"signing_secret": "s", "token": "t"}) == set()


def test_a_poll_or_socket_has_no_signature_to_check() -> None:
    assert of_account(channel="telegram", transport="poll", credentials={"token": "t"}) == set()
    assert of_account(channel="slack", transport="socket", credentials={"token": "t"}) == set()


def test_insecure_turns_the_missing_signature_into_a_warning() -> None:
    assert of_account(channel="telegram", insecure=True, credentials={"token": "t"}) == {
        ("warning", "accounts[0].credentials.secret")
    }


def test_an_account_that_only_listens_needs_no_token_on_a_webhook_but_does_to_poll() -> None:
    assert of_account(channel="telegram", send_mode="off", credentials={"secret": "s"}) == set()
    assert of_account(channel="telegram", send_mode="off", transport="poll") == {
        ("error", "accounts[0].credentials.token")
    }


@pytest.mark.parametrize(
    ("keys", "credential"),
    [
        ({"channel": "feishu", "credentials": {"app_secret": "s"}}, "encrypt_key"),
        ({"channel": "qq"}, "secret"),
        ({"channel": "whatsapp"}, "app_secret"),
        ({"channel": "whatsapp", "variant": "web"}, "secret"),
        ({"channel": "weixin", "variant": "desktop"}, "secret"),
    ],
)
def test_every_webhook_needs_a_signature(keys: dict[str, Any], credential: str) -> None:
    assert of_account(**keys) == {("error", f"accounts[0].credentials.{credential}")}


def test_a_signature_that_leaves_the_body_open_protects_nothing() -> None:
    keys = {"channel": "dingtalk", "credentials": {"app_secret": "s"}}
    assert of_account(**keys) == {("error", "accounts[0].transport")}
    assert of_account(**keys, insecure=True) == set()


def test_c15_a_wecom_bot_without_its_name_is_a_warning() -> None:
    assert of_account(channel="wecom", credentials={"token": "t", "encoding_aes_key": "k"}) == {
        ("warning", "accounts[0].self_name")
    }


def test_lists_that_shut_everybody_out_are_warned_about() -> None:
    listens = {"channel": "telegram", "credentials": {"secret": "s", "token": "t"}}
    assert of_account(**listens, groups="listed") == {("warning", "accounts[0].listed_groups")}
    assert of_account(**listens, direct="owners") == {("warning", "accounts[0].owners")}
    assert of_account(**listens, direct="members") == {("warning", "accounts[0].members")}
    assert of_account(**listens, direct="members", owners=["1"]) == set()


def test_no_account_is_a_warning_and_no_admin_token_is_fine() -> None:
    assert found({}) == {("warning", "accounts")}


def test_every_problem_says_what_to_do_and_shows_no_secret() -> None:
    settings = from_mapping(
        {
            "harness": {"kind": "openai", "api_key": "s3cret"},
            "accounts": [{"id": "a", "channel": "slack", "credentials": {"app_token": "s3cret"}}],
        }
    )
    listed = problems(settings)
    assert listed
    assert all(problem.text and problem.fix for problem in listed)
    assert "s3cret" not in repr(listed)
