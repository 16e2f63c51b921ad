"""What a verdict is: written to the record, applied by the engagement writer in ticket order. Pure."""

from shared.outcome import Forward, Outcome


def outcome() -> Outcome:
    """Whatever came of the call, the message returns to its partition under its old ticket."""
    return Forward("engagement", "judged")
