"""What delivery reads before every part, over a real server."""

from typing import Any

import pytest
import redis
from core_world import NOW_MS, Core, core_of, settings_of

from shared.channels.port import Target
from shared.settings import AccountSettings
from workers import outbound
from workers.apply import Seen
from workers.delivery import facts
from workers.delivery.policy import SendFacts


def record(account: AccountSettings, **more: Any) -> Seen:
    made = outbound.record("E1-5", account, Target("anna", "private"), [], "answer", NOW_MS, **more)
    return Seen("E1-5", {k: str(v) for k, v in made.fields.items()})


def account_of(core: Core) -> AccountSettings:
    found = core.ctx.account("demo")
    assert found is not None
    return found


def test_the_ledger_is_a_state_for_each_part(core: Core) -> None:
    stored = {"0": "sent|t|1|m-1,m-2", "1": "intent|t|2|", "10": "unknown|t|3|a|b"}
    core.ctx.client.hset(core.ctx.keys.ledger("E1-5"), mapping=stored)
    assert facts.ledger(core.ctx, "E1-5") == {0: "sent", 1: "intent", 10: "unknown"}
    assert facts.ledger(core.ctx, "nobody") == {}


@pytest.mark.parametrize(("channel", "exempt"), [("mock", True), ("telegram", False), ("slack", False)])
def test_r5_r6_only_the_channel_named_mock_is_exempt(core_client: redis.Redis, channel: str, exempt: bool) -> None:
    core = core_of(core_client, settings_of(channel=channel))
    account = account_of(core)
    assert facts.sending(core.ctx, record(account), account) == SendFacts(False, False, False, True, exempt)


def test_r21_the_switches_are_read_afresh(core: Core) -> None:
    account = account_of(core)
    assert not facts.sending(core.ctx, record(account), account).read_only
    for name in ("read_only", "safe_mode", "paused"):
        core.ctx.switches.write(name, True, "anna", NOW_MS)
    said = facts.sending(core.ctx, record(account), account)
    assert (said.paused, said.read_only, said.safe_mode) == (True, True, True)


def test_z19_a_turns_reply_is_bound_to_its_askers_access(core: Core) -> None:
    core.ctx.access.replace("demo", blocked=["bert"])
    account = account_of(core)
    reply = record(account, parent="E1", sender_id="bert")
    assert not facts.sending(core.ctx, reply, account).admitted
    assert facts.sending(core.ctx, record(account, parent="E1", sender_id="anna"), account).admitted


def test_what_stands_alone_answers_nobodys_turn(core: Core) -> None:
    core.ctx.access.replace("demo", blocked=["bert"], direct="off")
    account = account_of(core)
    assert facts.sending(core.ctx, record(account, sender_id="bert"), account).admitted


def test_the_turn_that_waits_is_found_by_the_records_parent(core: Core) -> None:
    account = account_of(core)
    assert facts.parent(core.ctx, record(account)) is None
    assert facts.parent(core.ctx, record(account, parent="E1")) is None
    core.ctx.client.hset(core.ctx.keys.record("E1"), mapping={"step": "6", "place": "parked:outbound"})
    assert facts.parent(core.ctx, record(account, parent="E1")) == Seen("E1", {"step": "6", "place": "parked:outbound"})
