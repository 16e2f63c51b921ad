"""Sending to DingTalk: Markdown by the asker's sessionWebhook while it lives, else by the robot API."""

import json
import re
import time

from shared.channels.addresses import is_stand_in, parts_of
from shared.channels.dingtalk.limits import HOSTS, RATE_CODES, TITLE, UNSURE_CODES, WEBHOOK_MARGIN_MS
from shared.channels.dingtalk.lookup import (
    authorised,
    is_on,
    is_token_refused,
    is_too_fast,
    method_url,
    wait_s,
)
from shared.channels.markup import plain
from shared.channels.outcomes import of_error, of_status, rate_limited, refused, sent, unknown
from shared.channels.port import AckState, Delivery, Json, Part, PlatformApi, PlatformResponse, Switches, Target
from shared.channels.reading import id_of, int_of, map_of, text_of, whole
from shared.channels.splitting import split
from shared.channels.tokens import TOKENS
from shared.errors import EffectUnknown, Malformed, MillstreamError, Transient
from shared.settings import AccountSettings

_EVERYONE = re.compile(r"@(?=all\b|所有人|全体成员)", re.IGNORECASE)


def render(markdown: str) -> str:
    """The Markdown itself, which DingTalk shows. Only a request's own list pings anyone, and ours has none; a blank
    keeps a text from looking like a ping of everyone."""
    return _EVERYONE.sub("@ ", markdown)


async def send(
    target: Target, part: Part, nonce: str, account: AccountSettings, api: PlatformApi, switches: Switches
) -> Delivery:
    """One message, once. DingTalk has no idempotency key and no quote of its own: `nonce` is not used.

    The robot API reaches a person by the staff id alone, so one outside the organisation only has the webhook.
    """
    if (why := switches.refuses("dingtalk")) is not None:
        return Delivery("not-sent", reason=why)
    del nonce
    text = whole(part.text)
    words = {"title": title_of(text), "text": text}
    if (url := webhook_url(target, account, int(time.time() * 1000))) is not None:
        try:
            body = {"msgtype": "markdown", "markdown": words}
            return _by_webhook(await api.request("send", "POST", url, json=body))
        except MillstreamError as error:
            return of_error(error)
    place = _place(target)
    if place is None:
        return refused()
    try:
        headers = await authorised(account, api)
    except EffectUnknown as error:
        # Only the login is in doubt: the message was not written.
        return of_error(Transient(str(error)))
    except MillstreamError as error:
        return of_error(error)
    path, where = place
    body = {
        "robotCode": account.credential("app_key"),
        "msgKey": "sampleMarkdown",
        "msgParam": json.dumps(words, ensure_ascii=False),
        **where,
    }
    try:
        response = await api.request("send", "POST", method_url(account, path), headers=headers, json=body)
    except MillstreamError as error:
        return of_error(error)
    return _by_robot(response, account)


def webhook_url(target: Target, account: AccountSettings, now_ms: int) -> str | None:
    """Where to post: the sessionWebhook while it lives, on DingTalk's hosts, moved to `credentials.api_url` where that
    is set. Else None.

    The address comes with the event, whose body nothing signs: on any other host the answer would go to a stranger.
    """
    url, until = target.route.get("webhook", ""), target.route.get("until", "")
    if not (until.isascii() and until.isdigit() and len(until) <= 19) or now_ms + WEBHOOK_MARGIN_MS >= int(until):
        return None
    asked = parts_of(url)
    if asked is None or not is_on(url, HOSTS, account):
        return None
    base = account.credential("api_url").rstrip("/")
    if not base or is_stand_in(asked, account):
        return url
    return f"{base}{asked.path}?{asked.query}" if asked.query else f"{base}{asked.path}"


def title_of(text: str) -> str:
    """The first words, without notation: what lists of chats show."""
    first = next((line.strip() for line in plain(text).split("\n") if line.strip()), "")
    pieces = split(first, TITLE, "code_points")
    return pieces[0] if pieces else "…"


async def acknowledge(
    target: Target, state: AckState, account: AccountSettings, api: PlatformApi, switches: Switches
) -> None:
    """Nothing: robots cannot type or react by a documented call."""
    del target, state, account, api, switches


def _place(target: Target) -> tuple[str, dict[str, Json]] | None:
    if target.chat_type == "group":
        return "/v1.0/robot/groupMessages/send", {"openConversationId": target.chat_id}
    user = target.route.get("user")
    return ("/v1.0/robot/oToMessages/batchSend", {"userIds": [user]}) if user else None


def _by_webhook(response: PlatformResponse) -> Delivery:
    """A webhook says no with status 200 and an errcode; a message that it took gets no id."""
    if (decided := of_status(response)) is not None:
        return decided
    try:
        code = int_of(map_of(response.json()).get("errcode"))
    except Malformed:
        return unknown()
    if code == 0:
        return sent()
    if code is None or code in UNSURE_CODES:
        return unknown()
    return rate_limited(None) if code in RATE_CODES else refused()


def _by_robot(response: PlatformResponse, account: AccountSettings) -> Delivery:
    """2xx with a processQueryKey: sent, unless the one receiver is listed as not reached."""
    if is_token_refused(response):
        TOKENS.forget(account)
        return Delivery("not-sent", reason="token-refused", retry=True)
    if is_too_fast(response):
        return rate_limited(wait_s(response))
    if (decided := of_status(response)) is not None:
        return decided
    try:
        answer = map_of(response.json())
    except Malformed:
        return unknown()
    if answer.get("flowControlledStaffIdList"):
        return rate_limited(None)
    if answer.get("invalidStaffIdList"):
        return refused()
    ids = (id_of(answer.get("processQueryKey")), text_of(answer.get("carrierId")))
    found = tuple(each for each in ids if each)
    return sent(*found) if found else unknown()
