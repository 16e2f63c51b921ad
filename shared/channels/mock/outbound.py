"""Sending to the mock channel: a POST to `credentials.callback_url`, where one is given.

The body of a message: {"type": "message", "account", "chat", "thread", "reply_to", "text", "nonce"}; the answer may
name it: {"id": "…"}. The body of an acknowledgement: {"type": "ack", "account", "chat", "thread", "reply_to", "state"}.
"""

from shared.channels.outcomes import of_error, of_status, sent
from shared.channels.port import AckState, Delivery, Json, Part, PlatformApi, Switches, Target
from shared.channels.reading import id_of, map_of, whole
from shared.errors import Malformed, MillstreamError
from shared.settings import AccountSettings


def render(markdown: str) -> str:
    """As it is."""
    return markdown


async def send(
    target: Target, part: Part, nonce: str, account: AccountSettings, api: PlatformApi, switches: Switches
) -> Delivery:
    """Post the message, once; without a callback it counts as sent under the id `mock-NONCE`."""
    if (why := switches.refuses("mock")) is not None:
        return Delivery("not-sent", reason=why)
    own_id = f"mock-{nonce}"
    url = account.credential("callback_url")
    if not url:
        return sent(own_id)
    body = {**_where("message", target, account), "text": whole(part.text), "nonce": nonce}
    try:
        response = await api.request("send", "POST", url, json=body)
    except MillstreamError as error:
        return of_error(error)
    if (decided := of_status(response)) is not None:
        return decided
    try:
        return sent(id_of(map_of(response.json()).get("id")) or own_id)
    except Malformed:
        return sent(own_id)  # a callback need not answer anything


async def acknowledge(
    target: Target, state: AckState, account: AccountSettings, api: PlatformApi, switches: Switches
) -> None:
    """Post the state, where a callback is given. Raises what the network raises."""
    url = account.credential("callback_url")
    if switches.refuses("mock") is not None or account.ack == "none" or not url:
        return
    await api.request("acknowledge", "POST", url, json={**_where("ack", target, account), "state": state})


def _where(kind: str, target: Target, account: AccountSettings) -> dict[str, Json]:
    return {
        "type": kind,
        "account": account.id,
        "chat": target.chat_id,
        "thread": target.thread_id,
        "reply_to": target.reply_to,
    }
