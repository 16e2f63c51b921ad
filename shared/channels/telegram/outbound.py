"""Sending to Telegram: messages with styles as entities, and the signs that a turn runs."""

from shared.channels.markup import parse
from shared.channels.outcomes import of_error, of_status, rate_limited, refused, retry_after_s, sent, unknown
from shared.channels.port import AckState, Delivery, Json, Part, PlatformApi, PlatformResponse, Switches, Target
from shared.channels.reading import id_of, map_of, text_of, whole
from shared.channels.telegram.limits import MAX_ENTITIES, TYPING_TIMEOUT_S
from shared.channels.telegram.lookup import method_url
from shared.errors import Malformed, MillstreamError
from shared.settings import AccountSettings

EYES = "👀"


def render(markdown: str) -> str:
    """The Markdown itself: `send` turns it into visible text and entities, which can only be shorter, so that a cut
    never falls into notation. Telegram has no ping of everyone to defuse."""
    return markdown


async def send(
    target: Target, part: Part, nonce: str, account: AccountSettings, api: PlatformApi, switches: Switches
) -> Delivery:
    """sendMessage, once. Styles that the platform definitely refuses (400, so nothing was sent) are left out, then.

    Telegram has no idempotency key: `nonce` is not used.
    """
    if (why := switches.refuses("telegram")) is not None:
        return Delivery("not-sent", reason=why)
    del nonce
    url = method_url(account, "sendMessage")
    body = _message(target, part)
    try:
        response = await api.request("send", "POST", url, json=body)
        if "entities" in body and response.status == 400 and "entit" in _description(response):
            plain = {**body, "text": whole(part.text)}
            del plain["entities"]
            response = await api.request("send", "POST", url, json=plain)
    except MillstreamError as error:
        return of_error(error)
    return _delivery(response)


async def acknowledge(
    target: Target, state: AckState, account: AccountSettings, api: PlatformApi, switches: Switches
) -> None:
    """Typing while the turn works, or a reaction that goes when it is done. Raises what the network raises."""
    if switches.refuses("telegram") is not None or account.ack == "none":
        return
    body: dict[str, Json] = {"chat_id": _number(target.chat_id)}
    if account.ack == "typing":
        if state == "done":
            return
        body |= {"action": "typing", **_thread(target)}
        await api.request(
            "acknowledge", "POST", method_url(account, "sendChatAction"), json=body, timeout_s=TYPING_TIMEOUT_S
        )
    elif target.reply_to is not None:
        reaction = [{"type": "emoji", "emoji": EYES}] if state == "working" else []
        body |= {"message_id": _number(target.reply_to), "reaction": reaction}
        await api.request("acknowledge", "POST", method_url(account, "setMessageReaction"), json=body)


def _message(target: Target, part: Part) -> dict[str, Json]:
    styled = parse(whole(part.text))
    body: dict[str, Json] = {"chat_id": _number(target.chat_id), "text": styled.text, **_thread(target)}
    if not styled.text.strip():
        body["text"] = part.text
    elif entities := [_entity(styled.text, span.style, span.start, span.end, span.detail) for span in styled.spans]:
        body["entities"] = entities[:MAX_ENTITIES]
    if target.reply_to is not None:
        # The asker may have deleted the message: the answer is still for the chat.
        body["reply_parameters"] = {"message_id": _number(target.reply_to), "allow_sending_without_reply": True}
    return body


def _entity(text: str, style: str, start: int, end: int, detail: str) -> dict[str, Json]:
    """An entity: offset and length count UTF-16 units."""
    entity: dict[str, Json] = {
        "type": "text_link" if style == "link" else style,
        "offset": len(text[:start].encode("utf-16-le")) // 2,
        "length": len(text[start:end].encode("utf-16-le")) // 2,
    }
    if style == "link":
        entity["url"] = detail
    elif style == "pre" and detail:
        entity["language"] = detail
    return entity


def _thread(target: Target) -> dict[str, Json]:
    """The topic, where there is one: any other thread id is refused with "message thread not found"."""
    if target.thread_id is None or target.route.get("thread") == "comments":
        return {}
    return {"message_thread_id": _number(target.thread_id)}


def _number(value: str) -> int | str:
    digits = value.removeprefix("-")
    return int(value) if digits.isascii() and digits.isdigit() and len(digits) <= 19 else value


def _description(response: PlatformResponse) -> str:
    try:
        return text_of(map_of(response.json()).get("description")).lower()
    except Malformed:
        return ""


def _delivery(response: PlatformResponse) -> Delivery:
    """2xx with an id: sent. A definite error may also tell how long to wait, in the body."""
    try:
        answer = map_of(response.json())
    except Malformed:
        answer = {}
    wait_s = retry_after_s(map_of(answer.get("parameters")).get("retry_after"))
    if response.status == 429 and wait_s is not None:
        return rate_limited(wait_s)
    if (decided := of_status(response)) is not None:
        return decided
    if answer.get("ok") is False and isinstance(answer.get("error_code"), int):
        code = answer["error_code"]
        return rate_limited(wait_s) if code == 429 else refused() if 400 <= code < 500 else unknown()
    message_id = id_of(map_of(answer.get("result")).get("message_id"))
    return sent(message_id) if answer.get("ok") is True and message_id else unknown()
