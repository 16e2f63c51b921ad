"""Where a mock account's answers are posted: every send is written down, none is checked for being sent twice."""

from dataclasses import dataclass

from tests.platforms.emulator import Answer, Asked, Emulator


@dataclass(frozen=True)
class Sent:
    """One send as it came. `nonce` is `OUTBOUND-PART`, the same however often it is sent."""

    account: str
    chat: str
    text: str
    reply_to: str | None
    nonce: str


class Callback(Emulator):
    """`delay_s`: how long a send takes here."""

    def __init__(self, delay_s: float = 0.0) -> None:
        self.sends: list[Sent] = []
        self.delay_s = delay_s
        super().__init__()

    def handle(self, asked: Asked) -> Answer:
        body = asked.json()
        if body["type"] == "ack":
            return Answer()
        one = Sent(body["account"], body["chat"], body["text"], body["reply_to"], body["nonce"])
        with self.changed:
            self.sends.append(one)
            self.changed.notify_all()
        if self.delay_s:
            self.closing.wait(self.delay_s)
        return Answer(body={"id": f"cb-{one.nonce}"})
