"""A bridge's signature: the raw body and its time, nothing else lets an event in (C-22)."""

import pytest

from shared.channels.bridge import signed, verify
from shared.channels.port import HookRequest
from shared.errors import Unauthorised
from shared.settings import AccountSettings

NOW_S = 1_790_000_000
BODY = b'{"key": "\xe6\xbd\xae"}'
RIGHT = signed("tide", BODY, NOW_S)


def account(**more: object) -> AccountSettings:
    return AccountSettings.model_validate({"id": "b", "channel": "discord", "credentials": {"secret": "tide"}, **more})


def asked(headers: dict[str, str], body: bytes = BODY) -> HookRequest:
    return HookRequest("POST", headers, {}, body)


@pytest.mark.parametrize("off_s", [-300, 0, 300])
def test_signed_within_five_minutes_is_let_in(off_s: int) -> None:
    verify(asked(RIGHT), account(), (NOW_S + off_s) * 1000)


@pytest.mark.parametrize(
    ("headers", "body", "now_s"),
    [
        pytest.param({}, BODY, NOW_S, id="nothing"),
        pytest.param(RIGHT, BODY + b" ", NOW_S, id="another body"),
        pytest.param(RIGHT, BODY, NOW_S + 301, id="late"),
        pytest.param(RIGHT, BODY, NOW_S - 301, id="early"),
        pytest.param(signed("other", BODY, NOW_S), BODY, NOW_S, id="another secret"),
        pytest.param(RIGHT | {"x-millstream-timestamp": str(NOW_S + 1)}, BODY, NOW_S, id="another time"),
        pytest.param(RIGHT | {"x-millstream-timestamp": "٣"}, BODY, NOW_S, id="no number"),
        pytest.param(RIGHT | {"x-millstream-timestamp": "9" * 5000}, BODY, NOW_S, id="a huge number"),
        pytest.param(RIGHT | {"x-millstream-signature": "\udcff潮"}, BODY, NOW_S, id="not ASCII"),
    ],
)
def test_c22_anything_else_is_refused(headers: dict[str, str], body: bytes, now_s: int) -> None:
    with pytest.raises(Unauthorised):
        verify(asked(headers, body), account(), now_s * 1000)


def test_without_a_secret_only_an_insecure_account_is_open() -> None:
    with pytest.raises(Unauthorised):
        verify(asked(RIGHT), account(credentials={}), NOW_S * 1000)
    verify(asked({}), account(credentials={}, insecure=True), NOW_S * 1000)
    with pytest.raises(Unauthorised):
        verify(asked({}), account(insecure=True), NOW_S * 1000)
