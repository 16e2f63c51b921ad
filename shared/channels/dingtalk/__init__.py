"""DingTalk: a robot of an app, by HTTP or stream frames, and the robot API.

Credentials: `app_key` (the robot's code too), `app_secret` (signs requests, buys access tokens), `api_url` (a server
that stands in for DingTalk). The signature of HTTP requests does not cover the body: keep the webhook's address secret.
"""

from shared.channels import unasked
from shared.channels.dingtalk import inbound, outbound
from shared.channels.dingtalk import lookup as lookups
from shared.channels.dingtalk.limits import LIMITS
from shared.channels.port import Channel, HookResponse

CHANNEL = Channel(
    name="dingtalk",
    limits=LIMITS,
    verify=inbound.verify,
    normalise=inbound.normalise,
    render=outbound.render,
    lookup=unasked.not_delivered,
    fetch=lookups.fetch,
    acknowledge=outbound.acknowledge,
    send=outbound.send,
    identity=unasked.as_configured,
    accepted=HookResponse(200, "{}", "application/json"),
)
