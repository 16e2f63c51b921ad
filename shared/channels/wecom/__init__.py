"""WeCom's AI bot: the encrypted HTTP callback, and replies by the callback's own response_url.

Credentials: `token` and `encoding_aes_key` (43 characters, both from the bot's API settings), `api_url` (a server that
stands in for WeCom's: replies go there, and media may lie there). The account's `self_name` is the bot's display name,
which no callback tells: without it the mention stays in the text, and every `@` in a group counts as one.
"""

from shared.channels import unasked
from shared.channels.port import Channel
from shared.channels.wecom import inbound, outbound
from shared.channels.wecom import lookup as lookups
from shared.channels.wecom.limits import LIMITS

CHANNEL = Channel(
    name="wecom",
    limits=LIMITS,
    verify=inbound.verify,
    handshake=inbound.handshake,
    normalise=inbound.normalise,
    render=outbound.render,
    lookup=unasked.not_delivered,
    fetch=lookups.fetch,
    acknowledge=outbound.acknowledge,
    send=outbound.send,
    identity=unasked.as_configured,
)
