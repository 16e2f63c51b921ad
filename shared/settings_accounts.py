"""`[[accounts]]`, `[engagement]` and `[[routes]]`: who the bot is, when it answers, and by which harness."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, model_validator

from shared.settings_tables import Count, Duration, Hour, Language, Name, Ratio, Table, Word

Channel = Literal["weixin", "feishu", "dingtalk", "wecom", "qq", "slack", "telegram", "discord", "whatsapp", "mock"]
Transport = Literal["webhook", "poll", "socket"]
ChatType = Literal["private", "group"]
Role = Literal["owner", "member", "guest", "system", "blocked"]
SendMode = Literal["auto", "confirm", "off"]
SessionScope = Literal["chat", "sender"]
OwnerGroupMode = Literal["addressed", "all", "off"]

# Defaults of behaviour.md section 2, steps 4 and 5.
KEYWORDS = (
    "紧急", "救命", "故障", "坏掉", "坏了", "报错", "出错", "崩溃", "求助", "帮帮我", "help", "urgent", "error", "bug",
)  # fmt: skip
NEGATIVE_PHRASES = (
    "少说点", "少说两句", "别说了", "别再说", "闭嘴", "住口", "安静点", "别吵", "吵死了", "烦死了", "别插嘴",
    "没人问你", "shut up", "be quiet", "stop talking",
)  # fmt: skip
PIERCING_WORDS = ("紧急", "救命", "故障", "崩溃", "求助", "帮帮我")

# What each channel's platform offers (channel facts). A bridge or forwarder may post to any account's webhook, so
# `webhook` fits every channel; the first entry is what an empty `transport` means.
TRANSPORTS: dict[str, tuple[Transport, ...]] = {
    "weixin": ("poll", "webhook"),
    "feishu": ("webhook", "socket"),
    "dingtalk": ("webhook", "socket"),
    "wecom": ("webhook", "socket"),
    "qq": ("webhook", "socket"),
    "slack": ("webhook", "socket"),
    "telegram": ("webhook", "poll"),
    "discord": ("socket", "webhook"),
    "whatsapp": ("webhook", "socket"),
    "mock": ("webhook",),
}
VARIANTS: dict[str, tuple[str, ...]] = {"whatsapp": ("cloud", "web"), "weixin": ("ilink", "desktop")}


def _timezone(value: str) -> str:
    try:
        ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError("is not a known time zone: write a name such as Asia/Shanghai or Europe/Berlin") from None
    return value


def _listed(value: object) -> object:
    return [value] if isinstance(value, str) else value


class EngagementSettings(Table):
    """The gate's table: `[engagement]` for every account, overridden key by key by `accounts.engagement`.

    Hours are of the account's time zone. `probability` is the chance that an idle engine asks the judge unprompted.
    """

    engine: bool = False
    trigger_words: tuple[Word, ...] = ()
    probability: Ratio = 0.05
    active_s: Duration = 180
    cooldown_s: Duration = 1800
    quiet_start: Hour = 23
    quiet_end: Hour = 7
    keywords: tuple[Word, ...] = KEYWORDS
    negative_phrases: tuple[Word, ...] = NEGATIVE_PHRASES
    piercing_words: tuple[Word, ...] = PIERCING_WORDS

    def overridden_by(self, other: EngagementSettings | None) -> EngagementSettings:
        """This table with the keys that were written in `other` taken from there.

        The result remembers (`model_fields_set`) only what `other` wrote, so that merging it again changes nothing and
        a stored configuration keeps the two tables apart.
        """
        if other is None:
            return self
        own = set(other.model_fields_set)
        values = {key: getattr(other if key in own else self, key) for key in EngagementSettings.model_fields}
        return EngagementSettings.model_construct(_fields_set=own, **values)

    def piercing_fault(self) -> str | None:
        """Why `piercing_words` is refused, or None: a strict subset of `keywords` without `bug` (section 2, step 4)."""
        keywords = {word.lower() for word in self.keywords}
        piercing = {word.lower() for word in self.piercing_words}
        if "bug" in piercing:
            return "piercing_words must not contain bug: remove it"
        if stray := sorted(piercing - keywords):
            return f"piercing_words must be a subset of keywords: add {', '.join(stray)} to keywords or remove it here"
        if piercing and piercing == keywords:
            return "piercing_words must be a strict subset of keywords: at least one keyword must not pierce"
        return None


class AccountSettings(Table):
    """One `[[accounts]]`: a bot on a channel. `engagement` is always the full, merged table."""

    id: Name
    channel: Channel
    transport: Literal["", "webhook", "poll", "socket"] = ""
    variant: Literal["", "cloud", "web", "ilink", "desktop", "webhook"] = ""
    self_id: str = ""
    self_ids: tuple[str, ...] = ()
    self_name: str = ""
    self_app_id: str = ""
    credentials: dict[str, SecretStr] = Field(default_factory=dict[str, SecretStr])
    owners: tuple[str, ...] = ()
    owner_name: str = ""
    members: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()
    direct: Literal["open", "members", "owners", "off"] = "open"
    groups: Literal["open", "listed", "off"] = "open"
    listed_groups: tuple[str, ...] = ()
    direct_per_minute: Count = 6
    owner_group_mode: OwnerGroupMode = "addressed"
    owner_min_interval_s: Duration = 0
    everyone_addresses: bool = True
    answer_bots: bool = False
    bot_turns: Count = 5
    stale_after_s: Duration = 0
    session_scope: SessionScope = "chat"
    ack: Literal["none", "typing", "reaction"] = "typing"
    join_s: Duration = 1.5
    sender_per_minute: Count = 0
    chat_per_minute: Count = 0
    account_per_day: Count = 0
    language: Language = "auto"
    insecure: bool = False
    quote_policy: Literal["recover", "evidence_only"] = "recover"
    verify_source: bool = False
    send_mode: SendMode = "auto"
    draft_expires_s: Duration = 3600
    approver: str = ""
    timezone: Annotated[str, AfterValidator(_timezone)] = "Asia/Shanghai"
    authorised_modes: tuple[Literal["passive-capture", "interactive-read", "draft-confirm-auto"], ...] = ()
    engagement: EngagementSettings = EngagementSettings()

    @model_validator(mode="after")
    def _fits_channel(self) -> AccountSettings:
        offered = TRANSPORTS[self.channel]
        if self.transport and self.transport not in offered:
            raise ValueError(f"transport: {self.channel} has no {self.transport}, write one of {', '.join(offered)}")
        variants = VARIANTS.get(self.channel, ())
        # `webhook` as a variant is what the scenario schema allows besides; it names no other shape of the channel.
        if self.variant not in ("", "webhook", *variants):
            fix = f"write one of {', '.join(variants)}" if variants else "remove it"
            raise ValueError(f"variant: {self.channel} has no variant {self.variant}, {fix}")
        return self

    @cached_property
    def all_self_ids(self) -> frozenset[str]:
        """Every id under which the platform may name this bot."""
        return frozenset(item for item in (self.self_id, *self.self_ids) if item)

    @property
    def used_transport(self) -> Transport:
        """`transport`, or what an empty one means for this channel and variant (a bridge posts to the webhook)."""
        if self.transport:
            return self.transport
        return "webhook" if self.variant == "desktop" else TRANSPORTS[self.channel][0]

    def credential(self, name: str) -> str:
        """The clear value of `credentials.NAME`, empty when it is not set. Never log it."""
        secret = self.credentials.get(name)
        return secret.get_secret_value() if secret else ""


Matcher = Annotated[tuple[str, ...], BeforeValidator(_listed), Field(min_length=1)]


class RouteSettings(Table):
    """One `[[routes]]`: matchers (absent: everything) and what they change (None: nothing).

    `engagement` holds the keys that the route wrote (`model_fields_set`); see `Settings.engagement_for`.
    """

    account: Matcher | None = None
    chat: Matcher | None = None
    thread: Matcher | None = None
    chat_type: Annotated[tuple[ChatType, ...], BeforeValidator(_listed), Field(min_length=1)] | None = None
    role: Annotated[tuple[Role, ...], BeforeValidator(_listed), Field(min_length=1)] | None = None
    harness: str | None = None
    model: str | None = None
    system: str | None = None
    send_mode: SendMode | None = None
    language: Language | None = None
    session_scope: SessionScope | None = None
    engagement: EngagementSettings | None = None
    owner_group_mode: OwnerGroupMode | None = None
    owner_min_interval_s: Duration | None = None

    @model_validator(mode="after")
    def _lane_needs_no_role(self) -> RouteSettings:
        if self.session_scope is not None and self.role is not None:
            raise ValueError(
                "a route that sets session_scope may not match on role (the lane is chosen before the role is known): "
                "move session_scope to a route without role"
            )
        return self

    def matches(self, account: str, chat: str, thread: str | None, chat_type: str, role: str | None) -> bool:
        """True when every matcher that was written holds; a role or thread that is None matches only its absence."""
        pairs: tuple[tuple[tuple[str, ...] | None, str | None], ...] = (
            (self.account, account),
            (self.chat, chat),
            (self.thread, thread),
            (self.chat_type, chat_type),
            (self.role, role),
        )
        return all(wanted is None or value in wanted for wanted, value in pairs)
