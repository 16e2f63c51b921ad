"""Sending to Slack: messages in its own notation, and the reaction that shows that a turn runs."""

from shared.channels.markup import Span, parse, write
from shared.channels.outcomes import header, of_error, of_status, rate_limited, refused, retry_after_s, sent, unknown
from shared.channels.port import AckState, Delivery, Json, Part, PlatformApi, PlatformResponse, Switches, Target
from shared.channels.reading import id_of, map_of, text_of, whole
from shared.channels.slack.content import escaped
from shared.channels.slack.limits import RATE_ERRORS, UNSURE_ERRORS
from shared.channels.slack.lookup import authorised, method_url
from shared.errors import Malformed, MillstreamError
from shared.settings import AccountSettings


def render(markdown: str) -> str:
    """The Markdown itself: `send` writes it in Slack's notation, where a cut can no longer fall into it. There every
    `<` of the answer is escaped, so it pings nobody."""
    return markdown


async def send(
    target: Target, part: Part, nonce: str, account: AccountSettings, api: PlatformApi, switches: Switches
) -> Delivery:
    """chat.postMessage, once. Slack has no idempotency key: `nonce` is not used."""
    if (why := switches.refuses("slack")) is not None:
        return Delivery("not-sent", reason=why)
    del nonce
    body: dict[str, Json] = {
        "channel": target.chat_id,
        "text": mrkdwn(part.text),
        "mrkdwn": True,
        "parse": "none",
        "link_names": False,
        "unfurl_links": False,
        "unfurl_media": False,
    }
    if (thread := thread_for(target)) is not None:
        body["thread_ts"] = thread
    try:
        response = await api.request(
            "send", "POST", method_url(account, "chat.postMessage"), headers=authorised(account), json=body
        )
    except MillstreamError as error:
        return of_error(error)
    return _delivery(response)


def thread_for(target: Target) -> str | None:
    """In a channel an answer hangs on the asker's message; a direct conversation needs no thread of its own."""
    if target.thread_id is not None or target.chat_type == "private":
        return target.thread_id
    return target.reply_to


def mrkdwn(markdown: str) -> str:
    """Markdown in Slack's notation."""
    return write(parse(whole(markdown)), escaped, _wrapped)


async def acknowledge(
    target: Target, state: AckState, account: AccountSettings, api: PlatformApi, switches: Switches
) -> None:
    """A reaction on the asker's message, taken away when the turn is done. Raises what the network raises.

    Bots cannot type on Slack, so `typing` is the reaction too.
    """
    if switches.refuses("slack") is not None or account.ack == "none" or target.reply_to is None:
        return
    method = "reactions.add" if state == "working" else "reactions.remove"
    body = {"channel": target.chat_id, "timestamp": target.reply_to, "name": "eyes"}
    await api.request("acknowledge", "POST", method_url(account, method), headers=authorised(account), json=body)


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
            return f"```\n{inside}\n```"
        case "link":
            return f"<{escaped(span.detail)}|{inside}>"


def _delivery(response: PlatformResponse) -> Delivery:
    """Slack says no with status 200 and `ok: false`."""
    if (decided := of_status(response)) is not None:
        return decided
    try:
        answer = map_of(response.json())
    except Malformed:
        return unknown()
    if answer.get("ok") is True:
        ts = id_of(answer.get("ts"))
        return sent(ts) if ts else unknown()
    error = text_of(answer.get("error"))
    if error in RATE_ERRORS:
        return rate_limited(retry_after_s(header(response.headers, "retry-after")))
    return unknown() if answer.get("ok") is not False or error in UNSURE_ERRORS or not error else refused()
