"""`Settings`: the whole configuration, checked, frozen."""

from __future__ import annotations

from typing import Any, Final

from pydantic import Field, ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticCustomError

from shared.settings_accounts import AccountSettings, EngagementSettings, RouteSettings
from shared.settings_errors import nearest
from shared.settings_tables import (
    AdminSettings,
    DeadLetterSettings,
    HarnessName,
    HarnessSettings,
    IndexSettings,
    IngestSettings,
    JudgeSettings,
    LogSettings,
    LookbackSettings,
    MediaSettings,
    MetricsSettings,
    NoticesSettings,
    PipelineSettings,
    PresenceSettings,
    RedisSettings,
    StorageSettings,
    SttSettings,
    Table,
)
from shared.texts import LANGUAGES, NAMES

CROSS_CHECK = "cross_check"
"""Type of the pydantic error whose message already is lines with their paths."""


NO_ROUTE: Final = RouteSettings()
"""What applies where no route matches: it changes nothing."""


class Settings(Table):
    """The configuration. Build it with `load` or `from_mapping`, which raise `ConfigurationError`."""

    paused: bool = False
    read_only: bool = False
    safe_mode: bool = False
    redis: RedisSettings = RedisSettings()
    ingest: IngestSettings = IngestSettings()
    pipeline: PipelineSettings = PipelineSettings()
    harness: HarnessSettings = HarnessSettings()
    harnesses: dict[HarnessName, HarnessSettings] = Field(default_factory=dict[str, HarnessSettings])
    routes: tuple[RouteSettings, ...] = ()
    judge: JudgeSettings = JudgeSettings()
    presence: PresenceSettings = PresenceSettings()
    index: IndexSettings = IndexSettings()
    lookback: LookbackSettings = LookbackSettings()
    media: MediaSettings = MediaSettings()
    stt: SttSettings = SttSettings()
    notices: NoticesSettings = NoticesSettings()
    texts: dict[str, dict[str, str]] = Field(default_factory=dict[str, dict[str, str]])
    admin: AdminSettings = AdminSettings()
    storage: StorageSettings = StorageSettings()
    metrics: MetricsSettings = MetricsSettings()
    log: LogSettings = LogSettings()
    dead_letters: DeadLetterSettings = DeadLetterSettings()
    engagement: EngagementSettings = EngagementSettings()
    accounts: tuple[AccountSettings, ...] = ()

    @field_validator("accounts", mode="after")
    @classmethod
    def _merge_engagement(
        cls, accounts: tuple[AccountSettings, ...], info: ValidationInfo
    ) -> tuple[AccountSettings, ...]:
        # `engagement` stands before `accounts` above so that it is known here; absent only when it was invalid itself.
        shared: Any = info.data.get("engagement")
        if not isinstance(shared, EngagementSettings):
            return accounts
        return tuple(
            account.model_copy(update={"engagement": shared.overridden_by(account.engagement)}) for account in accounts
        )

    @model_validator(mode="after")
    def _cross_check(self) -> Settings:
        wrong = [*self._text_faults(), *self._account_faults(), *self._route_faults()]
        if wrong:
            # A name may hold half of a surrogate pair (JSON can spell one), which no message of pydantic's can.
            lines = "\n".join(wrong).encode("utf-8", "replace").decode()
            raise PydanticCustomError(CROSS_CHECK, "{lines}", {"lines": lines})
        return self

    def _text_faults(self) -> list[str]:
        wrong: list[str] = []
        for name, by_language in self.texts.items():
            if name not in NAMES:
                wrong.append(f"`texts.{name}`: unknown text{nearest(name, sorted(NAMES))}")
            wrong += [
                f"`texts.{name}.{language}`: unknown language{nearest(language, LANGUAGES)}"
                for language in by_language
                if language not in LANGUAGES
            ]
        return wrong

    def _account_faults(self) -> list[str]:
        top = self.engagement.piercing_fault()
        wrong = [f"`engagement.piercing_words`: {top}"] if top else []
        first: dict[str, int] = {}
        for number, account in enumerate(self.accounts):
            earlier = first.setdefault(account.id, number)
            if earlier != number:
                wrong.append(
                    f'`accounts[{number}].id`: duplicate id "{account.id}", also accounts[{earlier}]: '
                    "every account needs its own"
                )
            fault = account.engagement.piercing_fault()
            if fault and fault != top:
                wrong.append(f"`accounts[{number}].engagement.piercing_words`: {fault}")
        return wrong

    def _route_faults(self) -> list[str]:
        wrong: list[str] = []
        ids = list(dict.fromkeys(account.id for account in self.accounts))
        for number, route in enumerate(self.routes):
            path = f"routes[{number}]"
            if route.harness not in (None, "", "default", *self.harnesses):
                known = ["default", *self.harnesses]
                wrong.append(f'`{path}.harness`: unknown harness "{route.harness}"{nearest(route.harness, known)}')
            wrong += [
                f'`{path}.account`: unknown account "{name}"{nearest(name, ids)}'
                for name in route.account or ()
                if name not in ids
            ]
            if route.engagement is not None:
                merged = [
                    account.engagement.overridden_by(route.engagement)
                    for account in self.accounts
                    if route.account is None or account.id in route.account
                ] or [self.engagement.overridden_by(route.engagement)]
                faults = dict.fromkeys(fault for table in merged if (fault := table.piercing_fault()))
                own = {self.engagement.piercing_fault(), *(a.engagement.piercing_fault() for a in self.accounts)}
                wrong += [f"`{path}.engagement.piercing_words`: {fault}" for fault in faults if fault not in own]
        return wrong

    def account(self, account_id: str) -> AccountSettings | None:
        """The account of that id, or None."""
        return next((account for account in self.accounts if account.id == account_id), None)

    def harness_named(self, name: str) -> HarnessSettings:
        """The harness of that name; "" and "default" are `[harness]`. Raises KeyError for an unknown name."""
        return self.harness if name in ("", "default") else self.harnesses[name]

    def route(self, account: str, chat: str, thread: str | None, chat_type: str, role: str | None) -> RouteSettings:
        """The first route that matches, or an empty one. `chat_type` is private or group.

        With `role` None (ingest, which cannot know it yet) routes that match on role are passed over; they never set
        what ingest needs, the session scope.
        """
        return next((r for r in self.routes if r.matches(account, chat, thread, chat_type, role)), NO_ROUTE)

    def engagement_for(self, account: AccountSettings, route: RouteSettings) -> EngagementSettings:
        """The account's table with the keys that the route wrote."""
        return account.engagement.overridden_by(route.engagement)
