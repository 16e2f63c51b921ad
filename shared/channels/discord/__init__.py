"""Discord: gateway events, posted by a bridge that holds the gateway's socket, and the REST API v10.

Credentials: `token` (the bot's), `secret` (shared with the bridge), `api_url` (a server that stands in for
`https://discord.com/api/v10`). The account's `self_ids` should hold the bot's user id and its managed role's id.
"""

from shared.channels import bridge
from shared.channels.discord import inbound, outbound
from shared.channels.discord import lookup as lookups
from shared.channels.discord.limits import LIMITS
from shared.channels.discord.tables import rendered
from shared.channels.port import Channel

CHANNEL = Channel(
    name="discord",
    limits=LIMITS,
    verify=bridge.verify,
    normalise=inbound.normalise,
    render=rendered,
    lookup=lookups.lookup,
    verify_source=lookups.verify_source,
    fetch=lookups.fetch,
    acknowledge=outbound.acknowledge,
    send=outbound.send,
    identity=lookups.identity,
)
