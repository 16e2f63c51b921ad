"""What delivery looks at before a send."""

from shared.admission import admits_sender
from shared.settings import AccountSettings
from shared.switches import State
from workers.apply import Seen
from workers.delivery.policy import SendFacts
from workers.outbound import target_from


def sending(seen: Seen, account: AccountSettings, switches: State) -> SendFacts:
    """What `can_send` needs; that the switches are still so is seen by the script that writes the intent. A record that
    stands alone answers nobody's turn: only a turn's reply is bound to its asker's access."""
    target = target_from(seen.get("target"))
    sender = seen.get("sender")
    return SendFacts(
        paused=switches.paused,
        read_only=switches.read_only,
        safe_mode=switches.safe_mode,
        admitted=alone(seen) or admits_sender(sender, target.chat_type, target.chat_id, account),
        exempt=account.channel == "mock",
    )


def alone(seen: Seen) -> bool:
    """True for a record that is nobody's turn: a notice, a command's reply."""
    return seen.get("kind") == "out"
