"""Replying on WeCom: one Markdown message by the response_url that came with the asker's message."""

from shared.channels.addresses import is_stand_in, is_tls_on, parts_of
from shared.channels.outcomes import of_error, of_status, rate_limited, refused, sent, unknown
from shared.channels.port import AckState, Delivery, Part, PlatformApi, PlatformResponse, Switches, Target
from shared.channels.reading import int_of, map_of, whole
from shared.channels.wecom.limits import RATE_CODES, TENCENT, UNSURE_CODES
from shared.errors import Malformed, MillstreamError
from shared.settings import AccountSettings


def render(markdown: str) -> str:
    """The Markdown itself, which WeCom shows; a blank in `<@…>`, the mark of its bots' pings, defuses it."""
    return markdown.replace("<@", "< @")


async def send(
    target: Target, part: Part, nonce: str, account: AccountSettings, api: PlatformApi, switches: Switches
) -> Delivery:
    """POST to the response_url, once. It is taken once only, so a second reply to a message is refused by WeCom.

    Without one (a proactive message) or with one on a host that is not Tencent's nothing is sent. `nonce` is not used:
    the address itself is good for one message.
    """
    if (why := switches.refuses("wecom")) is not None:
        return Delivery("not-sent", reason=why)
    del nonce
    url = reply_url(target.route.get("response_url", ""), account)
    if url is None:
        return refused()
    body = {"msgtype": "markdown", "markdown": {"content": whole(part.text)}}
    try:
        response = await api.request("send", "POST", url, json=body)
    except MillstreamError as error:
        return of_error(error)
    return _delivery(response)


def reply_url(url: str, account: AccountSettings) -> str | None:
    """Where to post: the response_url on Tencent's hosts, moved to `credentials.api_url` where that is set. Else None.

    The address comes with the event: on any other host the answer would go to a stranger.
    """
    asked = parts_of(url)
    if asked is None:
        return None
    if is_stand_in(asked, account):
        return url
    if not is_tls_on(asked, TENCENT):
        return None
    base = account.credential("api_url").rstrip("/")
    if not base:
        return url
    return f"{base}{asked.path}?{asked.query}" if asked.query else f"{base}{asked.path}"


async def acknowledge(
    target: Target, state: AckState, account: AccountSettings, api: PlatformApi, switches: Switches
) -> None:
    """Nothing: bots cannot type or react on WeCom, and a message would use up the only reply."""
    del target, state, account, api, switches


def _delivery(response: PlatformResponse) -> Delivery:
    """WeCom says no with status 200 and an errcode; a message that it took gets no id."""
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
