"""Sending to Discord: replies that ping nobody, and the signs that a turn runs."""

import hashlib

from shared.channels.discord.limits import NONCE_CHARS, SUPPRESS_EMBEDS
from shared.channels.discord.lookup import authorised, url_of
from shared.channels.outcomes import of_error, of_status, rate_limited, retry_after_s, sent, unknown
from shared.channels.port import AckState, Delivery, Json, Part, PlatformApi, PlatformResponse, Switches, Target
from shared.channels.reading import id_of, map_of, whole
from shared.errors import Malformed, MillstreamError
from shared.settings import AccountSettings

EYES = "👀"


async def send(
    target: Target, part: Part, nonce: str, account: AccountSettings, api: PlatformApi, switches: Switches
) -> Delivery:
    """Create Message, once. Discord answers a nonce that it knows with the message that it made then."""
    if (why := switches.refuses("discord")) is not None:
        return Delivery("not-sent", reason=why)
    body: dict[str, Json] = {
        "content": whole(part.text),
        "allowed_mentions": {"parse": [], "replied_user": False},
        "nonce": hashlib.sha256(nonce.encode("utf-8", "surrogatepass")).hexdigest()[:NONCE_CHARS],
        "enforce_nonce": True,
        "flags": SUPPRESS_EMBEDS,
    }
    if target.reply_to is not None:
        # The asker may have deleted the message: the answer is still for the chat.
        body["message_reference"] = {"message_id": target.reply_to, "fail_if_not_exists": False}
    url = url_of(account, "channels", target.chat_id, "messages")
    try:
        response = await api.request("send", "POST", url, headers=authorised(account), json=body)
    except MillstreamError as error:
        return of_error(error)
    return _delivery(response)


async def acknowledge(
    target: Target, state: AckState, account: AccountSettings, api: PlatformApi, switches: Switches
) -> None:
    """Typing while the turn works, or a reaction that goes when it is done. Raises what the network raises."""
    if switches.refuses("discord") is not None or account.ack == "none":
        return
    if account.ack == "typing":
        if state == "working":
            url = url_of(account, "channels", target.chat_id, "typing")
            await api.request("acknowledge", "POST", url, headers=authorised(account))
    elif target.reply_to is not None:
        url = url_of(account, "channels", target.chat_id, "messages", target.reply_to, "reactions", EYES, "@me")
        method = "PUT" if state == "working" else "DELETE"
        await api.request("acknowledge", method, url, headers=authorised(account))


def _delivery(response: PlatformResponse) -> Delivery:
    """2xx with an id: sent. A 429 tells its wait in the body, more exactly than in the header."""
    try:
        answer = map_of(response.json())
    except Malformed:
        answer = {}
    wait_s = retry_after_s(answer.get("retry_after"))
    if response.status == 429 and wait_s is not None:
        return rate_limited(wait_s)
    if (decided := of_status(response)) is not None:
        return decided
    message_id = id_of(answer.get("id"))
    return sent(message_id) if message_id else unknown()
