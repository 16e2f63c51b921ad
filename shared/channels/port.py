"""The channel port: what a platform's folder must offer. A new channel is one folder and one line in `shared.channels`.

Everything but `lookup`, `verify_source`, `fetch`, `acknowledge`, `send` and `identity` is pure. Those get a
`PlatformApi`: the only way to the network, with retries off, every request labelled by its call.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

from shared.message import Attachment, ChannelName, Lookup, Message, ReplyReference
from shared.settings import AccountSettings

Json: TypeAlias = Any
Call: TypeAlias = Literal["get_message", "verify", "send", "identity", "fetch", "acknowledge", "poll", "login"]
AckState: TypeAlias = Literal["working", "done"]


@dataclass(frozen=True, slots=True)
class HookRequest:
    """A webhook request as it came: header names in lower case, the body's bytes untouched."""

    method: str
    headers: Mapping[str, str]
    query: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class HookResponse:
    """What to answer the platform at once."""

    status: int
    body: str = ""
    content_type: str = "text/plain"


@dataclass(frozen=True, slots=True)
class Limits:
    """What a platform allows; each channel's `limits.py` names the source of every figure.

    text_units: longest text of one message, counted in `unit`.
    per_chat: (messages, seconds) sent to one chat at most. per_account: the same for the account.
    dedupe_s: how long a redelivery can come.
    reply_window_s: how long after a message its replies are taken, replies: how many of them. 0: no bound.
    keeps_index: what was sent is kept in the outbound index, because quotes of it come without a text.
    looks_back: where the index knows nothing, the bound session's history is searched, and a hit goes into the index.
    """

    text_units: int
    unit: Literal["code_points", "utf16", "utf8"]
    per_chat: tuple[int, float]
    per_account: tuple[int, float]
    dedupe_s: int
    reply_window_s: int = 0
    replies: int = 0
    keeps_index: bool = False
    looks_back: bool = False


@dataclass(frozen=True, slots=True)
class Target:
    """Where a reply goes: frozen with the turn. `reply_to` is the asker's message id, None for a proactive one."""

    chat_id: str
    chat_type: Literal["private", "group"]
    thread_id: str | None = None
    reply_to: str | None = None
    route: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of an answer. `text` for a text; `name`, `media_type` and `ref` describe an image or a file."""

    kind: Literal["text", "image", "file"]
    text: str = ""
    name: str | None = None
    media_type: str | None = None
    ref: str | None = None


@dataclass(frozen=True, slots=True)
class Switches:
    """The sending switches as of now. `mock` is exempt (behaviour.md, section 5)."""

    read_only: bool = False
    safe_mode: bool = False

    def refuses(self, channel: str) -> str | None:
        """The reason why this channel may not send, or None."""
        if channel == "mock":
            return None
        if self.read_only:
            return "read-only-mode"
        return "safe-mode" if self.safe_mode else None


@dataclass(frozen=True, slots=True)
class Delivery:
    """What became of one send. `ids`: every id under which the platform may name the message later.

    `retry`: not-sent, and sending again may work (could not connect, 429), after `retry_after_s` if the platform said.
    """

    state: Literal["sent", "not-sent", "unknown"]
    ids: tuple[str, ...] = ()
    reason: str = ""
    retry: bool = False
    retry_after_s: float | None = None


@dataclass(frozen=True, slots=True)
class Identity:
    """Who the platform says the bot is."""

    self_ids: tuple[str, ...]
    name: str


@dataclass(frozen=True, slots=True)
class PlatformResponse:
    """An HTTP answer. `json` raises `shared.errors.Malformed` where the body is no JSON."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Json:
        """The parsed body."""
        import json

        from shared.errors import Malformed

        try:
            return json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise Malformed("the platform's answer is not JSON") from error


class PlatformApi(Protocol):
    """The network, one request at a time, never repeated by itself.

    Raises `shared.errors.Transient` when the connection was never made, and `shared.errors.EffectUnknown` when the
    request was written and no full answer came (time out, broken connection).
    """

    async def request(
        self,
        call: Call,
        method: str,
        url: str,
        *,
        ref: str = "",
        headers: Mapping[str, str] | None = None,
        json: Json = None,
        params: Mapping[str, str] | None = None,
        data: Mapping[str, str] | None = None,
        timeout_s: float = 10.0,
        max_bytes: int = 4_194_304,
    ) -> PlatformResponse:
        """Send one request. `ref` is the id of the message asked for (get_message, verify), for scripts and logs."""
        ...


def no_handshake(request: HookRequest, account: AccountSettings) -> HookResponse | None:
    """`handshake` of a platform, or a bridge, that has none."""
    del request, account


def to_asker(message: Message) -> Target:
    """`target` of a platform that answers the asker's own message, in its chat and thread."""
    return Target(message.chat_id, message.chat_type, message.thread_id, message.message_id, message.route)


async def nothing_to_ask(message: Message, account: AccountSettings, api: PlatformApi) -> bool:
    """`verify_source` of a platform that has no call for it: the signature alone vouches for the message."""
    del message, account, api
    return True


@dataclass(frozen=True, slots=True)
class Channel:
    """One messenger: its folder's functions under the names that every stage calls them by.

    verify(request, account, now_ms): raises `shared.errors.Unauthorised` unless the platform vouches for the request.
    handshake(request, account): the answer to a platform's handshake (verified before), None when it is an event.
    normalise(event, account): all messages of one event; raises only `shared.errors.Malformed`. What is no message
        (receipts, reactions) gives an empty list; an edit, an echo, a notice gives one with `action`, `ignore_reason`.
    target(message): where a reply to it goes.
    render(markdown): the harness's Markdown as this platform's text; pings of everyone are defused.
    lookup(wanted, message, account, api): one platform call, bound to the message's own chat; every failure is a
        reference with a reason.
    verify_source(message, account, api): True when the platform, asked for the current message, names the same sender,
        chat and parent. Raises Transient when it could not be asked.
    fetch(attachment, account, api, max_bytes): its bytes, from the channel's own hosts only. Raises Transient, Refused
        or EffectUnknown.
    acknowledge(target, state, account, api, switches): show that a turn runs; failures are the caller's to ignore.
    send(target, part, nonce, account, api, switches): send one part once. The first statement asks `switches`. `nonce`
        is the ledger's idempotency key, for platforms that have one.
    identity(account, api): ask the platform who the bot is. Raises Transient, Refused or EffectUnknown.
    accepted: what a webhook answers once its event was taken.
    """

    name: ChannelName
    limits: Limits
    verify: Callable[[HookRequest, AccountSettings, int], None]
    normalise: Callable[[Json, AccountSettings], list[Message]]
    render: Callable[[str], str]
    lookup: Callable[[Lookup, Message, AccountSettings, PlatformApi], Awaitable[ReplyReference]]
    fetch: Callable[[Attachment, AccountSettings, PlatformApi, int], Awaitable[bytes]]
    acknowledge: Callable[[Target, AckState, AccountSettings, PlatformApi, Switches], Awaitable[None]]
    send: Callable[[Target, Part, str, AccountSettings, PlatformApi, Switches], Awaitable[Delivery]]
    identity: Callable[[AccountSettings, PlatformApi], Awaitable[Identity]]
    handshake: Callable[[HookRequest, AccountSettings], HookResponse | None] = no_handshake
    target: Callable[[Message], Target] = to_asker
    verify_source: Callable[[Message, AccountSettings, PlatformApi], Awaitable[bool]] = nothing_to_ask
    accepted: HookResponse = HookResponse(200)
