"""DingTalk: a robot of an app, by HTTP or stream frames, and the robot API.

Credentials: `app_key` (the robot's code too), `app_secret` (signs requests, buys access tokens), `api_url` (a server
that stands in for DingTalk). The signature of HTTP requests does not cover the body: keep the webhook's address secret.
"""

from shared.channels.dingtalk import inbound, outbound
from shared.channels.dingtalk import lookup as lookups
from shared.channels.dingtalk.limits import LIMITS
from shared.channels.port import Channel, HookResponse, nothing_to_ask

CHANNEL = Channel(
    name="dingtalk",
    limits=LIMITS,
    verify=inbound.verify,
    handshake=inbound.handshake,
    normalise=inbound.normalise,
    target=outbound.target,
    render=outbound.render,
    lookup=lookups.lookup,
    verify_source=nothing_to_ask,
    fetch=lookups.fetch,
    acknowledge=outbound.acknowledge,
    send=outbound.send,
    identity=lookups.identity,
    accepted=HookResponse(200, "{}", "application/json"),
)
