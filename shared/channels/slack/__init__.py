"""Slack: the Events API by HTTP or socket, and the Web API.

Credentials: `token` (xoxb-…), `signing_secret`, `app_token` (xapp-…, for the socket's connector), `api_url` (a server
that stands in for Slack). The account's `self_ids` should hold the bot's user id and its bot id.
"""

from shared.channels.port import Channel
from shared.channels.slack import inbound, outbound
from shared.channels.slack import lookup as lookups
from shared.channels.slack.limits import LIMITS

CHANNEL = Channel(
    name="slack",
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
