"""A dead letter: what could not be done, kept whole, with what is needed to do it again. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from shared.reasons import NEEDS_AGAIN


@dataclass(frozen=True, slots=True)
class Letter:
    """One letter. Times in Unix ms. `out`: the outbound record, when it died in delivery."""

    id: str
    stage: str
    reason: str
    error: str
    channel: str
    account: str
    attempts: int
    first_failed_at: int
    dead_at: int
    replays: int
    status: str
    worker: str
    out: str = ""

    @classmethod
    def from_hash(cls, id_: str, raw: Mapping[str, str]) -> "Letter":
        """From its Redis hash."""
        return cls(
            id=id_,
            stage=raw.get("stage", ""),
            reason=raw.get("reason", ""),
            error=raw.get("error", ""),
            channel=raw.get("channel", ""),
            account=raw.get("account", ""),
            attempts=int(raw.get("attempts", 0)),
            first_failed_at=int(raw.get("first_failed_at", 0)),
            dead_at=int(raw.get("dead_at", 0)),
            replays=int(raw.get("replays", 0)),
            status=raw.get("status", ""),
            worker=raw.get("worker", ""),
            out=raw.get("out", ""),
        )

    def fits(self, stage: str = "", reason: str = "", channel: str = "", account: str = "") -> bool:
        """True when every given criterion equals the letter's."""
        pairs = ((stage, self.stage), (reason, self.reason), (channel, self.channel), (account, self.account))
        return all(not wanted or wanted == has for wanted, has in pairs)


def why_not(letter: Letter, *, again: bool, max_replays: int) -> str | None:
    """Why a letter may not be replayed, or None."""
    if letter.reason == "poison":
        return "it is no message of ours: there is nothing to replay"
    if letter.reason in NEEDS_AGAIN and not again:
        return f"{letter.reason}: doing it again may do it twice; say --again if that is what you want"
    if letter.replays >= max_replays:
        return f"it was replayed {letter.replays} times, which is the most (dead_letters.max_replays)"
    return None
