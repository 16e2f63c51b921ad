"""Weixin: personal WeChat through Tencent's iLink bot API.

Inbound is a getupdates answer, or one of its messages, posted by a signed bridge (`shared.channels.bridge`).
Credentials: `token` (bot_token of the login), `api_url` (the login's baseurl; without it the public address), `secret`
(what the bridge signs with). The account's `self_id` is the login's ilink_bot_id.
"""

from shared.channels import bridge, unasked
from shared.channels.port import Channel
from shared.channels.weixin import inbound, outbound
from shared.channels.weixin import lookup as lookups
from shared.channels.weixin.limits import LIMITS

CHANNEL = Channel(
    name="weixin",
    limits=LIMITS,
    verify=bridge.verify,
    normalise=inbound.normalise,
    render=outbound.render,
    lookup=unasked.not_delivered,
    fetch=lookups.fetch,
    acknowledge=outbound.acknowledge,
    send=outbound.send,
    identity=unasked.as_configured,
)
