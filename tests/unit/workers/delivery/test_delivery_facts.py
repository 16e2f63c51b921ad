"""What delivery reads before every part: the record, its ledger, the switches and access as they stand now."""

from typing import Any

import pytest
import redis
from core_world import NOW_MS, Core, core_of, message, settings_of

from shared.channels.port import Target
from shared.settings import AccountSettings
from shared.switches import State
from workers import outbound
from workers.apply import Seen
from workers.delivery import facts
from workers.delivery.policy import SendFacts

OPEN = State(False, False, False)


def alone(account: AccountSettings, **more: Any) -> Seen:
    """A notice as `outbound.record` makes it."""
    made = outbound.record("E1-5", account, Target("anna", "private"), [], "notice", NOW_MS)
    return Seen("E1-5", {"kind": "out", **{k: str(v) for k, v in made.fields.items()}, **more})


def answer(account: AccountSettings, sender: str) -> Seen:
    """A turn that has its answer."""
    fields = outbound.to_send([], Target("anna", "private"), "answer", NOW_MS)
    return Seen(
        "E1", {"kind": "msg", "sender": sender, "account": account.id, **{k: str(v) for k, v in fields.items()}}
    )


def account_of(core: Core) -> AccountSettings:
    found = core.ctx.account("demo")
    assert found is not None
    return found


@pytest.mark.parametrize(("channel", "exempt"), [("mock", True), ("telegram", False), ("slack", False)])
def test_r5_r6_only_the_channel_named_mock_is_exempt(core_client: redis.Redis, channel: str, exempt: bool) -> None:
    account = account_of(core_of(core_client, settings_of(channel=channel)))
    assert facts.sending(alone(account), account, OPEN) == SendFacts(False, False, False, True, exempt)


@pytest.mark.parametrize("name", ["read_only", "safe_mode", "paused"])
def test_r21_a_switch_turned_after_the_claim_is_seen_before_the_send(core: Core, name: str) -> None:
    """The claim told that nothing forbids it; the script that writes the intent compares, and it is decided again."""
    [one] = core.publish(message())
    core.wake("admission", "engagement", "dispatch")
    core.ctx.scripts.call("take", NOW_MS, stage="delivery", id=one, token="t")
    _, told = core.ctx.switches.last()
    core.ctx.switches.write(name, True, "anna", NOW_MS)
    send = {
        "out": core.record(one)["out"], "part": 0, "token": "t", "holder": f"delivery:{one}", "rates": [],
        "busy": "t:busy:demo", "most": 4, "busy_ms": 1_000,
    }  # fmt: skip
    word, now = core.ctx.scripts.call("send", NOW_MS, switches=told, **send)
    assert word == "switched"
    assert core.ctx.client.hgetall(core.ctx.keys.ledger(core.record(one)["out"])) == {}
    state = core.ctx.switches.obeyed(now)
    account = account_of(core)
    said = facts.sending(answer(account, "anna"), account, state)
    assert {n: getattr(said, n) for n in ("read_only", "safe_mode", "paused")} == {
        n: n == name for n in ("read_only", "safe_mode", "paused")
    }


def test_z19_a_turns_reply_is_bound_to_its_askers_access(core: Core) -> None:
    core.ctx.access.replace("demo", blocked=["bert"])
    account = account_of(core)
    assert not facts.sending(answer(account, "bert"), account, OPEN).admitted
    assert facts.sending(answer(account, "anna"), account, OPEN).admitted


def test_what_stands_alone_answers_nobodys_turn(core: Core) -> None:
    core.ctx.access.replace("demo", blocked=["bert"], direct="off")
    account = account_of(core)
    assert facts.alone(alone(account))
    assert not facts.alone(answer(account, "bert"))
    assert facts.sending(alone(account, sender="bert"), account, OPEN).admitted


def test_a_pause_that_is_over_holds_nothing_though_it_was_known_last(core: Core) -> None:
    """The process knows a pause from its last claim; before it refuses because of it, it asks."""
    core.ctx.switches.write("paused", True, "anna", NOW_MS)
    assert core.ctx.switches.read().paused
    core.ctx.client.hset(core.ctx.keys.switches, "paused", 0)
    [one] = core.publish(message())
    core.wake("admission", "engagement")
    core.ctx.client.hset(core.ctx.keys.switches, "paused", 1)
    core.wake("dispatch")
    core.ctx.client.hset(core.ctx.keys.switches, "paused", 0)
    core.wake("delivery")
    assert core.end(one)[0] == "answered"
