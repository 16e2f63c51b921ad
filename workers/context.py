"""What every stage gets: the server, the clock, the configuration in force, the ways out. One object a process."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass

from shared.access import Access
from shared.beats import Beats, ServerWatch
from shared.channels import channel
from shared.channels.port import Channel, PlatformApi, Target
from shared.clock import Clock
from shared.configuration import Follower
from shared.frozen import FrozenTurn
from shared.harness.port import Harness
from shared.message import Message
from shared.redis.client import Redis
from shared.redis.keys import Keys
from shared.redis.scripts import Scripts
from shared.retry import Rng
from shared.sessions import Sessions
from shared.settings import AccountSettings, HarnessSettings, RouteSettings, Settings
from shared.switches import SwitchBoard
from workers.probe import Probe


@dataclass(slots=True)
class Context:
    """A process's surroundings. `draining` is set by TERM: nothing new is taken.

    hot_until: until when (monotonic seconds) it may be taken that a running task takes the next wake-up itself.
    api: the network of an account. harness: a harness by name. ended: told of every disposition (a scenario listens).
    """

    client: Redis
    keys: Keys
    scripts: Scripts
    clock: Clock
    config: Follower
    switches: SwitchBoard
    access: Access
    sessions: Sessions
    beats: Beats
    server: ServerWatch
    probe: Probe
    rng: Rng
    api: Callable[[AccountSettings], PlatformApi]
    harness: Callable[[str], Harness]
    log_key: bytes
    name: str = "worker"
    draining: bool = False
    hot_until: float = float("-inf")

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self.config.settings

    def now_ms(self) -> int:
        """The one clock."""
        return self.clock.now_ms()

    def token(self) -> str:
        """A fresh random token for a claim or lease."""
        return secrets.token_hex(8)

    def account(self, account_id: str) -> AccountSettings | None:
        """An account with its access overlay."""
        account = self.settings.account(account_id)
        return None if account is None else self.access.overlaid(account)


def routed(settings: Settings, account: AccountSettings, message: Message, role: str | None) -> RouteSettings:
    """The first route that matches a message."""
    return settings.route(account.id, message.chat_id, message.thread_id, message.chat_type, role)


def harness_settings(settings: Settings, name: str) -> HarnessSettings | None:
    """The harness of that name, or None where the configuration lost it while turns of it were under way."""
    return settings.harness if name in ("", "default") else settings.harnesses.get(name)


def target_of(message: Message) -> Target:
    """Where a reply to a message goes, by its channel."""
    return channel(message.channel).target(message)


def channel_of(account: AccountSettings) -> Channel:
    """The account's channel."""
    return channel(account.channel)


def routed_mode(settings: Settings, account: AccountSettings, frozen: FrozenTurn) -> str:
    """How the account sends what was said in a frozen turn: auto, confirm or off."""
    route = settings.route(account.id, frozen.chat_id, frozen.thread_id, frozen.chat_type, frozen.role)
    return route.send_mode or account.send_mode
