"""The commands that a person can give: what is one, who may, and what it does. Pure.

Only the current text is read: a quoted `/stop` is a quotation (behaviour.md, section 1, Commands; Q-24, Q-25, P-7).
"""

import re
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, cast, get_args

from shared.admission import TRUSTED, Reply, addressed
from shared.message import Message
from shared.settings import AccountSettings
from shared.settings_accounts import Role

Command: TypeAlias = Literal["help", "new", "status", "stop"]
TurnState: TypeAlias = Literal["ready", "running", "waiting", "answered", "sending"]

_COMMANDS: Final = frozenset(get_args(Command))
_SHAPE: Final = re.compile(r"/([A-Za-z]+)(?:@(\S+))?")
_IDLE: Final = "idle"


@dataclass(frozen=True, slots=True)
class LaneView:
    """What admission sees of a conversation. The default is one that nobody has used.

    current: the turn in `lane.current`, None when there is none. state: that turn's state, None with it; `ready` is
    every turn that is not at the harness now (due, parked, startable again), `waiting` one that has asked a question.
    asker: sender_id of that turn. pending_interaction: a question or approval is open. waiting: turns not yet started.
    """

    current: str | None = None
    state: TurnState | None = None
    asker: str | None = None
    pending_interaction: bool = False
    waiting: int = 0


@dataclass(frozen=True, slots=True)
class UnbindSession:
    """Let the lane's next turn begin a new session; the old one is kept."""

    lane: str


@dataclass(frozen=True, slots=True)
class StopTurn:
    """Mark the lane's current turn if it still is `turn_id`: a `running` one is cancelled by its worker, a `ready` or
    `waiting` one ends in this move. Asked for twice it does nothing more."""

    lane: str
    turn_id: str


Effect: TypeAlias = Reply | UnbindSession | StopTurn


def command_of(message: Message, account: AccountSettings) -> Command | None:
    """The command that the current text is, or None: then it is ordinary text.

    The whole text must be the command, so that a question after it is never swallowed. In a group it must be addressed;
    `/name@bot` with the bot's name or id addresses her by itself, `/name@somebody-else` is no command at all. A
    listen-only account (`send_mode = off`) knows none, because it never answers.
    """
    found = _SHAPE.fullmatch(message.text.strip())
    if found is None or account.send_mode == "off":
        return None
    name, whom = found[1].lower(), found[2]
    if name not in _COMMANDS:
        return None
    if whom is not None:
        names = {account.self_name.removeprefix("@"), *account.all_self_ids}
        if whom.casefold() not in {known.casefold() for known in names}:
            return None
    elif message.chat_type == "group" and not addressed(message, account):
        return None
    return cast("Command", name)


def permitted(command: Command, message: Message, role: Role, view: LaneView) -> bool:
    """True when this sender may give the command here. Without a running turn `/stop` is harmless, so anybody may."""
    match command:
        case "help" | "status":
            return True
        case "new":
            return message.chat_type == "private" or role in TRUSTED
        case "stop":
            asked = bool(message.sender_id) and view.asker == message.sender_id
            return view.current is None or asked or role in TRUSTED


def effects_of(command: Command, lane: str, view: LaneView) -> tuple[Effect, ...]:
    """What a permitted command does, the reply last."""
    match command:
        case "help":
            return (Reply("help"),)
        case "status":
            return (Reply("status", {"state": view.state or _IDLE, "waiting": view.waiting}),)
        case "new":
            if view.current is not None or view.pending_interaction:
                return (Reply("new_refused"),)
            return (UnbindSession(lane), Reply("new_session"))
        case "stop":
            if view.current is None:
                return (Reply("stop_none"),)
            if view.state in ("answered", "sending"):
                return (Reply("stop_too_late"),)
            return (StopTurn(lane, view.current), Reply("stop_done"))
