"""Sending to Weixin: plain texts, and the typing sign."""

import base64
import uuid
import zlib
from typing import Final

from shared.channels.markup import plain
from shared.channels.outcomes import of_error, of_status, rate_limited, refused, sent, unknown
from shared.channels.port import AckState, Call, Delivery, Json, Part, PlatformApi, PlatformResponse, Switches, Target
from shared.channels.reading import int_of, map_of, required_map, text_of, whole
from shared.channels.weixin.content import uint64_of
from shared.channels.weixin.limits import (
    APP_ID,
    BOT_AGENT,
    BOT_MESSAGE,
    CLIENT_VERSION,
    FINISHED,
    SEND_REFUSED,
    SEND_S,
    TEXT_ITEM,
    TYPING_S,
)
from shared.errors import Malformed, MillstreamError
from shared.settings import AccountSettings

API_URL: Final = "https://ilinkai.weixin.qq.com"

_NONCES: Final = uuid.UUID("6f1d3d0e-5a0b-5c55-9f43-0b8f4f0c7a21")
"""The name space of our client ids; invented."""

MOST_TICKETS: Final = 1000
"""Typing tickets that a process keeps; the oldest goes first."""

_tickets: dict[tuple[str, str, str], str] = {}
"""By account, its token and user. No life is published for one (others report 20 h and more): it is used until it is
refused."""


def render(markdown: str) -> str:
    """The Markdown itself: `send` turns it into visible text, which can only be shorter, so that a cut never falls into
    notation. The platform has no ping of everyone."""
    return markdown


async def send(
    target: Target, part: Part, nonce: str, account: AccountSettings, api: PlatformApi, switches: Switches
) -> Delivery:
    """sendmessage, once, with one item. The client id is made of `nonce`: the platform takes the same one only once."""
    if (why := switches.refuses("weixin")) is not None:
        return Delivery("not-sent", reason=why)
    message: dict[str, Json] = {
        "from_user_id": "",
        "to_user_id": target.chat_id,
        "client_id": client_id(account, nonce),
        "message_type": BOT_MESSAGE,
        "message_state": FINISHED,
        "item_list": [{"type": TEXT_ITEM, "text_item": {"text": plain(whole(part.text))}}],
    }
    if target.chat_type == "group":
        message["group_id"] = target.chat_id
    if token := target.route.get("context_token"):
        message["context_token"] = token
    try:
        response = await _post("send", "sendmessage", {"msg": message}, nonce, account, api, SEND_S)
    except MillstreamError as error:
        return of_error(error)
    return _delivery(response)


def client_id(account: AccountSettings, nonce: str) -> str:
    """The platform's idempotency key for `nonce`: the same for every try of the same part."""
    return f"millstream-{uuid.uuid5(_NONCES, f'{account.id}|{nonce}').hex}"


async def acknowledge(
    target: Target, state: AckState, account: AccountSettings, api: PlatformApi, switches: Switches
) -> None:
    """The typing sign, taken away when the turn is done; there are no reactions, so `reaction` is typing too.

    Raises what the network raises, and Malformed.
    """
    if switches.refuses("weixin") is not None or account.ack == "none" or target.chat_type == "group":
        return
    name = (account.id, account.credential("token"), target.chat_id)
    user: dict[str, Json] = {"ilink_user_id": target.chat_id}
    ticket = _tickets.get(name)
    if ticket is None:
        if state == "done":
            return
        asked = {**user, "context_token": target.route.get("context_token", "")}
        response = await _post("acknowledge", "getconfig", asked, target.chat_id, account, api, TYPING_S)
        ticket = text_of(map_of(response.json()).get("typing_ticket"))
        if not ticket:
            return
        while len(_tickets) >= MOST_TICKETS:
            _tickets.pop(next(iter(_tickets)), None)
        _tickets[name] = ticket
    body = {**user, "typing_ticket": ticket, "status": 1 if state == "working" else 2}
    response = await _post("acknowledge", "sendtyping", body, target.chat_id, account, api, TYPING_S)
    if response.status >= 400 or _code(map_of(response.json())) != 0:
        _tickets.pop(name, None)


async def _post(
    call: Call, method: str, body: dict[str, Json], seed: str, account: AccountSettings, api: PlatformApi, wait_s: float
) -> PlatformResponse:
    """A call of the bot's API. `seed` stands for the random number that every request names: the same request looks
    the same."""
    major, minor, patch = CLIENT_VERSION
    number = str(zlib.crc32(seed.encode("utf-8", "surrogatepass")))
    headers = {
        "authorizationtype": "ilink_bot_token",
        "authorization": f"Bearer {account.credential('token')}",
        "x-wechat-uin": base64.b64encode(number.encode()).decode(),
        "ilink-app-id": APP_ID,
        "ilink-app-clientversion": str(major << 16 | minor << 8 | patch),
    }
    info = {"channel_version": ".".join(map(str, CLIENT_VERSION)), "bot_agent": BOT_AGENT}
    url = f"{(account.credential('api_url') or API_URL).rstrip('/')}/ilink/bot/{method}"
    return await api.request(call, "POST", url, headers=headers, json={**body, "base_info": info}, timeout_s=wait_s)


def _delivery(response: PlatformResponse) -> Delivery:
    """Weixin says no with status 200 and a `ret`; success has none, or 0. Older servers name no id."""
    if (decided := of_status(response)) is not None:
        return decided
    try:
        answer = required_map(response.json(), "the platform's answer")
    except Malformed:
        return unknown()
    code = _code(answer)
    if code is None:
        return unknown()
    if code == SEND_REFUSED and "rate limit" in text_of(answer.get("errmsg")).lower():
        return rate_limited(None)
    if code != 0:
        return refused()
    message_id = uint64_of(answer.get("message_id"))
    return sent(message_id) if message_id else sent()


def _code(answer: dict[str, Json]) -> int | None:
    """The first of `ret` and `errcode` that is not 0; None when one of them is no number."""
    codes = [0 if answer.get(key) is None else int_of(answer[key]) for key in ("ret", "errcode")]
    return next((code for code in codes if code != 0), 0)
