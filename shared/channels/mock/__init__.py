"""A messenger for tests, demos and bridges: plain JSON in, plain JSON out.

Credentials: `secret` (for the header X-Millstream-Secret), `callback_url` (where answers are posted).
"""

from shared.channels import unasked
from shared.channels.mock import inbound, outbound
from shared.channels.mock import lookup as lookups
from shared.channels.mock.limits import LIMITS
from shared.channels.port import Channel

CHANNEL = Channel(
    name="mock",
    limits=LIMITS,
    verify=inbound.verify,
    normalise=inbound.normalise,
    render=outbound.render,
    lookup=unasked.not_delivered,
    fetch=lookups.fetch,
    acknowledge=outbound.acknowledge,
    send=outbound.send,
    identity=unasked.as_configured,
)
