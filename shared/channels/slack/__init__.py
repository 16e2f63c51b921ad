"""Slack: the Events API by HTTP or socket, and the Web API."""

from shared.channels.port import (
    AckState,
    Delivery,
    HookRequest,
    HookResponse,
    Identity,
    Json,
    Limits,
    Part,
    PlatformApi,
    Switches,
    Target,
)
from shared.channels.slack import inbound, outbound
from shared.channels.slack import lookup as lookups
from shared.channels.slack.limits import LIMITS
from shared.message import Attachment, ChannelName, Lookup, Message, ReplyReference
from shared.settings import AccountSettings


class SlackChannel:
    """The channel port, each method told where it lives.

    Credentials: `token` (xoxb-…), `signing_secret`, `app_token` (xapp-…, for the socket's connector), `api_url` (a
    server that stands in for Slack). The account's `self_ids` should hold the bot's user id and its bot id.
    """

    @property
    def name(self) -> ChannelName:
        """`slack`."""
        return "slack"

    @property
    def limits(self) -> Limits:
        """See `limits.py`."""
        return LIMITS

    def verify(self, request: HookRequest, account: AccountSettings, now_ms: int) -> None:
        """See `inbound.verify`."""
        inbound.verify(request, account, now_ms)

    def handshake(self, request: HookRequest, account: AccountSettings) -> HookResponse | None:
        """See `inbound.handshake`."""
        return inbound.handshake(request, account)

    def normalise(self, event: Json, account: AccountSettings) -> list[Message]:
        """See `inbound.normalise`."""
        return inbound.normalise(event, account)

    def target(self, message: Message) -> Target:
        """See `outbound.target`."""
        return outbound.target(message)

    def render(self, markdown: str) -> str:
        """See `outbound.render`."""
        return outbound.render(markdown)

    async def lookup(
        self, wanted: Lookup, message: Message, account: AccountSettings, api: PlatformApi
    ) -> ReplyReference:
        """See `lookup.lookup`."""
        return await lookups.lookup(wanted, message, account, api)

    async def verify_source(self, message: Message, account: AccountSettings, api: PlatformApi) -> bool:
        """See `lookup.verify_source`."""
        return await lookups.verify_source(message, account, api)

    async def fetch(self, attachment: Attachment, account: AccountSettings, api: PlatformApi, max_bytes: int) -> bytes:
        """See `lookup.fetch`."""
        return await lookups.fetch(attachment, account, api, max_bytes)

    async def acknowledge(
        self, target: Target, state: AckState, account: AccountSettings, api: PlatformApi, switches: Switches
    ) -> None:
        """See `outbound.acknowledge`."""
        await outbound.acknowledge(target, state, account, api, switches)

    async def send(
        self, target: Target, part: Part, nonce: str, account: AccountSettings, api: PlatformApi, switches: Switches
    ) -> Delivery:
        """See `outbound.send`."""
        return await outbound.send(target, part, nonce, account, api, switches)

    async def identity(self, account: AccountSettings, api: PlatformApi) -> Identity:
        """See `lookup.identity`."""
        return await lookups.identity(account, api)


CHANNEL = SlackChannel()
