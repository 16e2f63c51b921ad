"""Messages, accounts and a stored state for the tests of engagement."""

from dataclasses import dataclass, field
from typing import Any

from shared.admission import Warn, role_of
from shared.envelope import Envelope
from shared.message import Message, lane_of
from shared.settings import AccountSettings
from workers.engagement.policy import (
    Cooldown,
    Decision,
    FlowHit,
    Item,
    OwnerSpoke,
    Register,
    TakeSlot,
    ToldFull,
    World,
    decide,
    fold,
)

START_MS = 1_788_235_200_000
GROUP = "-100"


def account(**changes: Any) -> AccountSettings:
    """A Telegram bot with an owner "1" and a member "2"."""
    return AccountSettings.model_validate(
        {"id": "tg", "channel": "telegram", "self_id": "8001", "owners": ["1"], "members": ["2"], **changes}
    )


def item(number: int = 1, at_s: float = 0, *, settings: AccountSettings | None = None, **changes: Any) -> Item:
    """A guest's unaddressed group message, received `at_s` seconds after the start."""
    used = settings or account()
    fields: dict[str, Any] = {
        "channel": used.channel,
        "account": used.id,
        "message_id": str(number),
        "keys": (str(number),),
        "chat_id": GROUP,
        "chat_type": "group",
        "sender_id": "3",
        "text": "在吗",
        "mentions_bot": False,
        **changes,
    }
    message = Message.model_validate(fields)
    envelope = Envelope(id=f"e{number}", message=message, received_at_ms=START_MS + int(at_s * 1000))
    lane = lane_of(message.account, message.chat_id, message.thread_id, None)
    return Item(envelope, number, lane, role_of(message, used), used)


def private(number: int = 1, at_s: float = 0, **changes: Any) -> Item:
    """A message in the sender's private chat."""
    sender = str(changes.get("sender_id", "3"))
    return item(number, at_s, **{"chat_id": sender, "chat_type": "private", "mentions_bot": None, **changes})


def result(decision: Decision) -> tuple[str, str]:
    """(disposition or stage, reason) of a decision."""
    outcome = decision.outcome
    place = getattr(outcome, "disposition", None) or getattr(outcome, "stage", None)
    return str(place), str(getattr(outcome, "reason", ""))


def results(items: list[Item], world: World | None = None) -> list[tuple[str, str]]:
    """What becomes of messages whose guests' turns end at once, lanes included."""
    seen: list[tuple[str, str]] = []
    stored = Stored.of(world or World(lane_max=50))
    for one in items:
        decision = decide(one, stored.world())
        seen.append(result(decision))
        stored.apply(one, decision)
        stored.slots.clear()
        stored.lanes.clear()
    return seen


def in_batch(items: list[Item], world: World | None = None) -> list[tuple[str, str]]:
    """What becomes of one batch, in which no turn ends."""
    return [result(decision) for decision in fold(items, world or World(lane_max=50))[0]]


def registered(decision: Decision) -> list[tuple[str, str]]:
    """(text, label) of the rows."""
    return [(intent.text, intent.label) for intent in decision.intents if isinstance(intent, Register)]


def warnings(decision: Decision) -> list[dict[str, str | int]]:
    """The fields of each warning."""
    return [dict(intent.fields) for intent in decision.intents if isinstance(intent, Warn)]


@dataclass
class Stored:
    """The facts as a server keeps them, written independently of `policy.after`."""

    base: World
    cooldowns: dict[str, int] = field(default_factory=dict[str, int])
    flow: dict[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    spoke: dict[str, int] = field(default_factory=dict[str, int])
    slots: dict[str, str] = field(default_factory=dict[str, str])
    lanes: dict[str, int] = field(default_factory=dict[str, int])
    told: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])

    @classmethod
    def of(cls, base: World) -> "Stored":
        """The state that `base` shows."""
        return cls(
            base,
            dict(base.cooldowns),
            dict(base.flow),
            dict(base.owner_spoke),
            dict(base.busy_guests),
            dict(base.lanes),
            dict(base.full_told),
        )

    def world(self) -> World:
        """A fresh read."""
        return World(
            lane_max=self.base.lane_max,
            judge=self.base.judge,
            read_only=self.base.read_only,
            cooldowns=dict(self.cooldowns),
            flow=dict(self.flow),
            owner_spoke=dict(self.spoke),
            busy_guests=dict(self.slots),
            lanes=dict(self.lanes),
            full_told=dict(self.told),
        )

    def apply(self, one: Item, decision: Decision) -> None:
        """Write a decision."""
        for intent in decision.intents:
            if isinstance(intent, Cooldown):
                self.cooldowns[intent.chat_id] = intent.until_ms
            elif isinstance(intent, FlowHit):
                self.flow[intent.sender_id] = (*self.flow.get(intent.sender_id, ()), intent.at_ms)
            elif isinstance(intent, OwnerSpoke):
                self.spoke[intent.chat_id] = intent.at_ms
            elif isinstance(intent, TakeSlot):
                self.slots[intent.sender_id] = one.envelope.id
            elif isinstance(intent, ToldFull):
                self.told[intent.lane, intent.sender_id] = intent.at_ms
        if result(decision)[0] == "quotes":
            self.lanes[one.lane] = self.lanes.get(one.lane, 0) + 1
