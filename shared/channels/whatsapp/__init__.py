"""WhatsApp: the Cloud API (variant `cloud`, or none), or a linked device behind a signed bridge (variant `web`).

Credentials of `cloud`: `token`, `phone_number_id`, `app_secret` (signs the webhook), `verify_token` (of the webhook's
handshake), `api_url` (a server that stands in for the Graph API; it may end in another version, `/v24.0`).
Credentials of `web`: `secret` (signs both ways, `shared.channels.bridge`), `bridge_url` (takes the answers). The
account's `self_ids` should hold both of the bot's ids there: the number's and the LID.
"""

from shared.channels import unasked
from shared.channels.port import Channel
from shared.channels.whatsapp import inbound, outbound
from shared.channels.whatsapp import lookup as lookups
from shared.channels.whatsapp.limits import LIMITS

CHANNEL = Channel(
    name="whatsapp",
    limits=LIMITS,
    verify=inbound.verify,
    handshake=inbound.handshake,
    normalise=inbound.normalise,
    render=outbound.render,
    lookup=unasked.not_delivered,
    fetch=lookups.fetch,
    acknowledge=outbound.acknowledge,
    send=outbound.send,
    identity=lookups.identity,
)
