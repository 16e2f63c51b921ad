"""Sending to WhatsApp: to the Cloud API, or to the bridge of a linked device."""

import time

from shared.channels import bridge
from shared.channels.body import write_json
from shared.channels.markup import Span, parse, write
from shared.channels.outcomes import header as header_of
from shared.channels.outcomes import of_error, of_status, rate_limited, refused, retry_after_s, sent, unknown
from shared.channels.port import AckState, Delivery, Json, Part, PlatformApi, PlatformResponse, Switches, Target
from shared.channels.reading import id_of, int_of, map_of, maps_of, whole
from shared.channels.whatsapp.limits import BRIDGE_URL, RATE_CODES, WINDOW_CLOSED
from shared.channels.whatsapp.lookup import authorised, graph_url, number_of
from shared.channels.whatsapp.wamid import index_keys
from shared.errors import Malformed, MillstreamError
from shared.settings import AccountSettings

EYES = "👀"


def render(markdown: str) -> str:
    """The Markdown itself: `send` writes it in WhatsApp's notation, where a cut can no longer fall into it. A mention
    needs a list of ids beside the text, which is never sent, so the text pings nobody."""
    return markdown


async def send(
    target: Target, part: Part, nonce: str, account: AccountSettings, api: PlatformApi, switches: Switches
) -> Delivery:
    """One message, once. The Cloud API has no idempotency key; the bridge is given `nonce`."""
    if (why := switches.refuses("whatsapp")) is not None:
        return Delivery("not-sent", reason=why)
    try:
        if is_web(target, account):
            return await _to_bridge(target, part, nonce, account, api)
        return await _to_cloud(target, part, account, api)
    except MillstreamError as error:
        return of_error(error)


async def acknowledge(
    target: Target, state: AckState, account: AccountSettings, api: PlatformApi, switches: Switches
) -> None:
    """cloud: marks the message as read, which shows typing for up to 25 s or until the answer; or a reaction that goes
    when the turn is done. Groups know no marks. web: nothing. Raises what the network raises."""
    if switches.refuses("whatsapp") is not None or account.ack == "none" or is_web(target, account):
        return
    if target.reply_to is None or not (number := number_of(account, target.route)):
        return
    if account.ack == "typing":
        if state == "done" or target.chat_type == "group":
            return
        body: dict[str, Json] = {
            "messaging_product": "whatsapp",
            "status": "read",
            "message_id": target.reply_to,
            "typing_indicator": {"type": "text"},
        }
    else:
        reaction = {"message_id": target.reply_to, "emoji": EYES if state == "working" else ""}
        body = {**_addressed(target), "type": "reaction", "reaction": reaction}
    url = graph_url(account, f"{number}/messages")
    await api.request("acknowledge", "POST", url, headers=authorised(account), json=body)


def is_web(target: Target, account: AccountSettings) -> bool:
    """By the account, or by the chat: ids of the web form have an `@`, those of the Cloud API never."""
    return account.variant == "web" or "@" in target.chat_id


def written(markdown: str) -> str:
    """Markdown in WhatsApp's notation, which knows no escapes; never longer than `markdown`."""
    return write(parse(whole(markdown)), str, _wrapped)


def _wrapped(span: Span, inside: str) -> str:
    match span.style:
        case "bold":
            return f"*{inside}*"
        case "italic":
            return f"_{inside}_"
        case "strikethrough":
            return f"~{inside}~"
        case "code":
            return f"`{inside}`"
        case "pre":
            return f"```{inside}```"
        case "link":
            return inside if inside == span.detail else f"{inside} ({span.detail})"


def _addressed(target: Target) -> dict[str, Json]:
    """Where it goes: a group, a number, or a user known by an id instead of a number (`recipient`)."""
    group = target.chat_type == "group"
    by_id = not group and not target.chat_id.isdigit()
    return {
        "messaging_product": "whatsapp",
        "recipient_type": "group" if group else "individual",
        "recipient" if by_id else "to": target.chat_id,
    }


async def _to_cloud(target: Target, part: Part, account: AccountSettings, api: PlatformApi) -> Delivery:
    if not (number := number_of(account, target.route)):
        return refused()
    body: dict[str, Json] = {
        **_addressed(target),
        "type": "text",
        "text": {"preview_url": False, "body": written(part.text)},
    }
    if target.reply_to is not None:
        body["context"] = {"message_id": target.reply_to}
    url = graph_url(account, f"{number}/messages")
    response = await api.request("send", "POST", url, headers=authorised(account), json=body)
    answer = _answer(response)
    if 400 <= response.status < 500:
        code = int_of(map_of(answer.get("error")).get("code"))
        if code == WINDOW_CLOSED:
            return Delivery("not-sent", reason="window-closed")
        if code in RATE_CODES:
            return rate_limited(retry_after_s(header_of(response.headers, "retry-after")))
    if (decided := of_status(response)) is not None:
        return decided
    wamid = next((found for each in maps_of(answer.get("messages")) if (found := id_of(each.get("id")))), None)
    return sent(*index_keys(wamid)) if wamid else unknown()


async def _to_bridge(target: Target, part: Part, nonce: str, account: AccountSettings, api: PlatformApi) -> Delivery:
    body = {"chat": target.chat_id, "text": written(part.text), "reply_to": target.reply_to, "nonce": nonce}
    headers = bridge.signed(account.credential("secret"), write_json(body), int(time.time()))
    url = account.credential("bridge_url") or BRIDGE_URL
    response = await api.request("send", "POST", url, headers=headers, json=body)
    if (decided := of_status(response)) is not None:
        return decided
    message_id = id_of(_answer(response).get("id"))
    return sent(message_id) if message_id else unknown()


def _answer(response: PlatformResponse) -> dict[str, Json]:
    try:
        return map_of(response.json())
    except Malformed:
        return {}
