"""A messenger for tests, demos and bridges: plain JSON in, plain JSON out."""

from shared.channels.mock import inbound, outbound
from shared.channels.mock import lookup as lookups
from shared.channels.mock.limits import LIMITS
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
from shared.message import Attachment, ChannelName, Lookup, Message, ReplyReference
from shared.settings import AccountSettings


class MockChannel:
    """The channel port, each method told where it lives.

    Credentials: `secret` (for the header X-Millstream-Secret), `callback_url` (where answers are posted).
    """

    @property
    def name(self) -> ChannelName:
        """`mock`."""
        return "mock"

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
        """True: there is no platform to ask."""
        return True

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


CHANNEL = MockChannel()
