"""Feishu and Lark: event subscriptions by webhook, and the open API.

Credentials: `app_id` (cli_…), `app_secret`, `encrypt_key` and `verification_token` of the event subscription, `api_url`
(https://open.larksuite.com for Lark, or a server that stands in). The account's `self_id` should be the bot's open id.
"""

from shared.channels.feishu import inbound, outbound
from shared.channels.feishu import lookup as lookups
from shared.channels.feishu.limits import LIMITS
from shared.channels.port import Channel

CHANNEL = Channel(
    name="feishu",
    limits=LIMITS,
    verify=inbound.verify,
    handshake=inbound.handshake,
    normalise=inbound.normalise,
    render=outbound.render,
    lookup=lookups.lookup,
    verify_source=lookups.verify_source,
    fetch=lookups.fetch,
    acknowledge=outbound.acknowledge,
    send=outbound.send,
    identity=lookups.identity,
)
