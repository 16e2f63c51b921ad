"""The shape of a channel's wire. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from workers.ops.scenario.result import SentRow

Body: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Wire:
    """How a scenario reads a channel's requests and speaks for its platform.

    row(account, url, body): the text of a send request as a reader sees it, and where it goes.
    success(url, body, number, now_ms): the answer to a send that was taken; `number` is for the invented id.
    refusal(status, retry_after_s): a body that fits an HTTP status which the scenario gives alone.
    took(answer): whether a 2xx answer says that the message was taken.
    login: the answer to a request for an access token, for platforms that lend one.
    """

    row: Callable[[str, str, Body], SentRow]
    success: Callable[[str, Body, int, int], Body]
    refusal: Callable[[int, float | None], Body]
    took: Callable[[Any], bool]
    login: Body | None = None


def text_or_none(value: object) -> str | None:
    """An id as text; None stays None."""
    return None if value is None else str(value)


def says_ok(answer: object) -> bool:
    """True for `{"ok": true, …}`."""
    return isinstance(answer, Mapping) and answer.get("ok") is True  # pyright: ignore[reportUnknownMemberType]
