"""Telegram: the Bot API, by webhook or long poll.

Credentials: `token` (the bot's), `secret` (setWebhook's secret_token), `api_url` (a Bot API server of one's own).
The account's `self_name` is the bot's user name: without it a @mention by name cannot be told from another's.
"""

from shared.channels import unasked
from shared.channels.port import Channel
from shared.channels.telegram import inbound, outbound
from shared.channels.telegram import lookup as lookups
from shared.channels.telegram.limits import LIMITS

CHANNEL = Channel(
    name="telegram",
    limits=LIMITS,
    verify=inbound.verify,
    normalise=inbound.normalise,
    render=outbound.render,
    lookup=unasked.not_delivered,
    fetch=lookups.fetch,
    acknowledge=outbound.acknowledge,
    send=outbound.send,
    identity=lookups.identity,
)
