"""Messages and accounts for the tests of admission; a stored state that applies intents as a server would."""

from dataclasses import dataclass, field
from typing import Any

from shared.envelope import Envelope
from shared.message import Attachment, Message, ReplyReference, lane_of
from shared.settings import AccountSettings
from workers.admission import policy
from workers.admission.commands import LaneView, StopTurn
from workers.admission.policy import BotRun, Claim, ClaimKeys, Decision, Item, SetBotRun, World

START_MS = 1_788_235_200_000
GROUP = "-100"
QUOTE = ReplyReference(message_id="5", author_id="3", content="/stop")
IMAGE = Attachment(kind="image", name="港口.png")


def account(**changes: Any) -> AccountSettings:
    """A Telegram bot with an owner "1" and a member "2"."""
    base = {"id": "tg", "channel": "telegram", "self_id": "8001", "self_name": "relay_bot"}
    return AccountSettings.model_validate({**base, "owners": ["1"], "members": ["2"], **changes})


def item(number: int = 1, *, received_ms: int = START_MS, envelope: str = "", **changes: Any) -> Item:
    """A guest's group message that addresses the bot; `number` is its ticket and names it."""
    fields: dict[str, Any] = {
        "channel": "telegram",
        "account": "tg",
        "message_id": str(number),
        "chat_id": GROUP,
        "chat_type": "group",
        "sender_id": "3",
        "text": "在吗",
        "mentions_bot": True,
        **changes,
    }
    fields.setdefault("keys", (f"{fields['chat_id']}:{fields['message_id']}",))
    message = Message.model_validate(fields)
    lane = lane_of(message.account, message.chat_id, message.thread_id, None)
    identity = envelope or f"e{number}"
    return Item(Envelope(id=identity, message=message, received_at_ms=received_ms), number, lane)


def private(number: int = 1, **changes: Any) -> Item:
    """The same in the sender's private chat."""
    sender = str(changes.get("sender_id", "3"))
    return item(number, **{"chat_id": sender, "chat_type": "private", "mentions_bot": None, **changes})


def result(decision: Decision) -> tuple[str, str]:
    """(disposition or stage, reason) of a decision."""
    outcome = decision.outcome
    place = getattr(outcome, "disposition", None) or getattr(outcome, "stage", None)
    return str(place), str(getattr(outcome, "reason", ""))


def results(items: list[Item], world: World) -> list[tuple[str, str]]:
    """What becomes of a batch."""
    return [result(decision) for decision in policy.fold(items, world)[0]]


@dataclass
class Stored:
    """The facts as a server keeps them between two batches, written independently of `policy.after`."""

    claims: dict[str, Claim] = field(default_factory=dict[str, Claim])
    runs: dict[str, BotRun] = field(default_factory=dict[str, BotRun])
    lanes: dict[str, LaneView] = field(default_factory=dict[str, LaneView])

    def world(self, settings: AccountSettings, read_only: bool) -> World:
        """A fresh read."""
        return World(settings, read_only, dict(self.claims), dict(self.runs), dict(self.lanes))

    def apply(self, one: Item, decision: Decision) -> None:
        """Write a decision's intents."""
        for intent in decision.intents:
            if isinstance(intent, ClaimKeys):
                for key in intent.keys:
                    assert key not in self.claims
                    self.claims[key] = Claim(one.envelope.id, intent.identity)
            elif isinstance(intent, SetBotRun):
                self.runs[intent.run] = intent.state
            elif isinstance(intent, StopTurn) and self.lanes[intent.lane].state != "running":
                self.lanes[intent.lane] = LaneView(waiting=self.lanes[intent.lane].waiting)
