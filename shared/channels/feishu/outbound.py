"""Sending to Feishu: messages and replies, and the reaction that shows that a turn runs."""

from uuid import NAMESPACE_URL, uuid5

from shared.channels.feishu.limits import MARKUP_CODES, RATE_CODES, REACTION, UNSURE_CODES
from shared.channels.feishu.lookup import authorised, check_token, code_of, method_url
from shared.channels.feishu.post import bare_content_of, content_of
from shared.channels.outcomes import header, of_error, of_status, rate_limited, refused, retry_after_s, sent, unknown
from shared.channels.port import AckState, Delivery, Json, Part, PlatformApi, PlatformResponse, Switches, Target
from shared.channels.reading import id_of, map_of, maps_of
from shared.errors import MillstreamError
from shared.settings import AccountSettings


def render(markdown: str) -> str:
    """The Markdown itself: `send` makes a post of it, where a cut can no longer fall into notation; nothing pings."""
    return markdown


async def send(
    target: Target, part: Part, nonce: str, account: AccountSettings, api: PlatformApi, switches: Switches
) -> Delivery:
    """A reply to the asker's message, else a message to the chat, once; `nonce` becomes Feishu's `uuid`, under which it
    takes a message once an hour. A post that is definitely refused goes as bare text, then."""
    if (why := switches.refuses("feishu")) is not None:
        return Delivery("not-sent", reason=why)
    kind, content = content_of(part.text)
    try:
        response = await _post(target, kind, content, nonce, account, api)
        if kind == "post" and 200 <= response.status < 500 and code_of(response)[0] in MARKUP_CODES:
            # Another uuid: the first one belongs to what was refused.
            response = await _post(target, *bare_content_of(part.text), f"{nonce}:text", account, api)
        check_token(response, account)
    except MillstreamError as error:
        return of_error(error)
    return _delivery(response)


async def acknowledge(
    target: Target, state: AckState, account: AccountSettings, api: PlatformApi, switches: Switches
) -> None:
    """A reaction on the asker's message, taken away when the turn is done. Raises what the network raises.

    Bots cannot type on Feishu, so `typing` is the reaction too. Its id is asked for: nothing else names it.
    """
    if switches.refuses("feishu") is not None or account.ack == "none" or target.reply_to is None:
        return
    url = method_url(account, "im", "v1", "messages", target.reply_to, "reactions")
    headers = await authorised(account, api)
    if state == "working":
        body = {"reaction_type": {"emoji_type": REACTION}}
        check_token(await api.request("acknowledge", "POST", url, headers=headers, json=body), account)
        return
    shown = await api.request("acknowledge", "GET", url, headers=headers, params={"reaction_type": REACTION})
    check_token(shown, account)
    if (reaction := _own_reaction(code_of(shown)[1], account)) is not None:
        own = method_url(account, "im", "v1", "messages", target.reply_to, "reactions", reaction)
        await api.request("acknowledge", "DELETE", own, headers=headers)


def _own_reaction(answer: dict[str, Json], account: AccountSettings) -> str | None:
    """The reaction of this app; without a known app id, that of any app (another one's cannot be taken away)."""
    app_id = account.credential("app_id")
    for item in maps_of(map_of(answer.get("data")).get("items")):
        operator = map_of(item.get("operator"))
        if operator.get("operator_type") == "app" and (not app_id or id_of(operator.get("operator_id")) == app_id):
            return id_of(item.get("reaction_id"))
    return None


async def _post(
    target: Target, kind: str, content: str, nonce: str, account: AccountSettings, api: PlatformApi
) -> PlatformResponse:
    body: dict[str, Json] = {"msg_type": kind, "content": content, "uuid": str(uuid5(NAMESPACE_URL, nonce))}
    path: tuple[str, ...] = ("im", "v1", "messages")
    params: dict[str, str] | None = {"receive_id_type": "chat_id"}
    if target.reply_to is None:
        body["receive_id"] = target.chat_id
    else:
        path, params = (*path, target.reply_to, "reply"), None
        if target.thread_id is not None:
            body["reply_in_thread"] = True
    headers = await authorised(account, api)
    return await api.request("send", "POST", method_url(account, *path), headers=headers, params=params, json=body)


def _delivery(response: PlatformResponse) -> Delivery:
    """Feishu's own code tells more than the status that it comes with."""
    code, answer = code_of(response)
    if code in UNSURE_CODES:
        return unknown()
    if code in RATE_CODES:
        wait = header(response.headers, "retry-after") or header(response.headers, "x-ogw-ratelimit-reset")
        return rate_limited(retry_after_s(wait))
    if (decided := of_status(response)) is not None:
        return decided
    if code is None:
        return unknown()
    if code != 0:
        return refused()
    message_id = id_of(map_of(answer.get("data")).get("message_id"))
    return sent(message_id) if message_id else unknown()
