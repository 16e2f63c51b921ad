"""Discord: golden events, what lets an event in, what is quoted, what is sent and what comes of it."""

import math
from collections.abc import Mapping
from typing import Any

import pytest
from one_answer import Recorder, answered, ended

from shared.channels import bridge
from shared.channels.discord import CHANNEL
from shared.channels.port import Delivery, HookRequest, Part, PlatformResponse, Switches, Target
from shared.errors import EffectUnknown, Malformed, Refused, Transient, Unauthorised
from shared.message import Attachment, Message
from shared.settings import AccountSettings
from tests.contracts.golden import account_of, case_id, cases, differences, load, reference_differences
from workers.ops.scenario.wires.discord import WIRE

FILES = cases("discord")
BASE = "https://discord.com/api/v10"
NOW_S = 1_793_580_000


def account(**more: Any) -> AccountSettings:
    known = {
        "id": "dc", "channel": "discord", "self_id": "99", "credentials": {"token": "tide", "secret": "shared"},
    }  # fmt: skip
    return AccountSettings.model_validate(known | more)


def raw(**more: Any) -> dict[str, Any]:
    base = {
        "id": "5", "type": 0, "channel_id": "7", "channel_type": 0, "guild_id": "3", "content": "hi",
        "author": {"id": "11", "username": "ida"}, "mentions": [],
    }  # fmt: skip
    return base | more


def normalised(kind: str = "MESSAGE_CREATE", who: AccountSettings | None = None, **more: Any) -> Message:
    [found] = CHANNEL.normalise({"op": 0, "t": kind, "s": 1, "d": raw(**more)}, who or account())
    return found


def reply(**more: Any) -> dict[str, Any]:
    return {"type": 19, "message_reference": {"type": 0, "message_id": "4", "channel_id": "7", **more}}


def sent_by(api: Recorder, switches: Switches | None = None, **more: Any) -> Delivery:
    where = Target("7", "group", None, "5")
    part = Part("text", text="@everyone **tide** 12:40")
    return ended(CHANNEL.send(where, part, "out:dc:1:0", account(**more), api, switches or Switches()))


@pytest.mark.parametrize("path", FILES, ids=case_id)
def test_q49_q50_c1_event_is_normalised_as_the_fixture_says(path: Any) -> None:
    fixture = load(path)
    [message] = CHANNEL.normalise(fixture["event"], account_of(fixture))
    assert differences(message, fixture["expect"]) == {}
    assert Message.model_validate_json(message.model_dump_json(exclude_defaults=True)) == message
    if "redelivery" in fixture:
        [second] = CHANNEL.normalise(fixture["redelivery"]["event"], account_of(fixture))
        assert (second.keys, second.identity) == (message.keys, message.identity)


@pytest.mark.parametrize("path", [path for path in FILES if "lookup" in load(path)], ids=case_id)
def test_q51_absent_is_one_get_of_that_message_in_this_channel(path: Any) -> None:
    fixture = load(path)
    [message] = CHANNEL.normalise(fixture["event"], account_of(fixture))
    assert message.reply_to is not None
    assert message.reply_to.lookup is not None
    api = answered(fixture["lookup"]["http_status"], fixture["lookup"]["response"])
    found = ended(CHANNEL.lookup(message.reply_to.lookup, message, account(), api))
    assert reference_differences(found, fixture["lookup"]["expect_reply_to"]) == {}
    assert (found.source, found.explicit_text) == ("lookup", False)
    url = BASE + fixture["lookup"]["request"]["path"]
    assert api.asked == [("get_message", "GET", url, None, {"authorization": "Bot tide"})]


@pytest.mark.parametrize(
    "api",
    [answered(429), answered(500), answered(200, b"no json"), answered(200, []), Recorder(EffectUnknown("late"))],
)
def test_q56_lookup_that_fails_is_not_delivered(api: Recorder) -> None:
    message = normalised(**reply())
    assert message.reply_to is not None
    assert message.reply_to.lookup is not None
    found = ended(CHANNEL.lookup(message.reply_to.lookup, message, account(), api))
    assert (found.message_id, found.unavailable_reason) == ("4", "not-delivered")


def test_id_that_is_no_number_never_becomes_part_of_an_address() -> None:
    for key in ("id", "channel_id"):
        with pytest.raises(Malformed):
            CHANNEL.normalise({"op": 0, "t": "MESSAGE_CREATE", "s": 1, "d": raw() | {key: "../9"}}, account())
    found = normalised(**reply(message_id=".."), mentions=[]).reply_to
    assert found is not None
    assert (found.unavailable_reason, found.needs_lookup) == ("not-found", False)


def test_q52_another_channel_or_message_is_not_found_without_a_request() -> None:
    other = {"id": "4", "channel_id": "8", "content": "secret", "author": {"id": "1"}}
    quotes: list[dict[str, Any]] = [
        reply(channel_id="8"),
        reply(message_id="5"),
        {**reply(), "referenced_message": other},
        {**reply(), "referenced_message": {**other, "id": "6", "channel_id": "7"}},
    ]
    for more in quotes:
        found = normalised(**more).reply_to
        assert found is not None
        assert (found.unavailable_reason, found.content, found.needs_lookup) == ("not-found", None, False)


def test_forward_is_its_snapshot_and_blank_snapshot_is_no_empty_message() -> None:
    pointer = {"type": 1, "message_id": "4", "channel_id": "8"}
    snapshot = {"message": {"content": "shoal", "attachments": [{"filename": "a.png", "content_type": "image/png"}]}}
    found = normalised(content="", message_reference=pointer, message_snapshots=[snapshot]).reply_to
    assert found is not None
    assert (found.content, found.reference_kind, found.source_chat_id) == ("shoal", "forward", "8")
    assert (found.explicit_text, found.needs_lookup, len(found.attachments)) == (True, False, 1)
    blank = {"id": "4", "channel_id": "7", "content": "", "author": {"id": "1"}}
    empty = normalised(**reply(), referenced_message=blank).reply_to
    assert empty is not None
    assert (empty.author_id, empty.content, empty.unavailable_reason) == ("1", None, "not-delivered")


def test_q37_ping_of_a_reply_is_a_mention_and_a_reply_without_is_none() -> None:
    quoted = {"id": "4", "channel_id": "7", "content": "x", "author": {"id": "99", "bot": True}}
    pinged = normalised(**reply(), referenced_message=quoted, mentions=[{"id": "99"}])
    silent = normalised(**reply(), referenced_message=quoted)
    assert (pinged.addressed, pinged.mentions_bot) == (True, True)
    assert (silent.addressed, silent.mentions_bot) == (False, False)
    unknown = normalised(who=account(self_id=""), mentions=[{"id": "99"}])
    assert (unknown.self_known, unknown.mentions_bot, unknown.mentions) == (False, None, ("99",))


def test_edit_and_deletion_have_keys_of_their_own() -> None:
    edit = normalised("MESSAGE_UPDATE", edited_timestamp="2026-10-01T08:00:01.500000+00:00")
    assert (edit.action, edit.sent_at_ms) == ("edit", 1_790_841_601_500)
    unfurl = normalised("MESSAGE_UPDATE", edited_timestamp=None)
    gone = normalised("MESSAGE_DELETE")
    assert (unfurl.ignore_reason, gone.ignore_reason) == ("unfurl-update", "delete-notice")
    assert len({normalised().keys, edit.keys, unfurl.keys, gone.keys}) == 4


@pytest.mark.parametrize("bad", [None, 1, "x", [], {}, {"id": 1}, [{"id": []}], "\ud800", 10**400, math.nan, True])
def test_wrong_types_are_absent_or_malformed_never_worse(bad: Any) -> None:
    event: dict[str, Any] = {
        "op": 0,
        "t": "MESSAGE_CREATE",
        "s": 1,
        "d": raw(**reply(), referenced_message={"id": "4"}),
    }
    tried: list[Any] = [bad, {**event, "d": bad}, {**event, "t": bad}, {**event, "op": bad}]
    keys = (*event["d"], "attachments", "embeds", "mention_roles", "timestamp", "member", "message_snapshots")
    tried += [{**event, "d": {**event["d"], key: bad}} for key in keys]
    tried.append({**event, "d": raw(message_reference={"type": 1}, message_snapshots=[{"message": bad}])})
    for each in tried:
        try:
            found = CHANNEL.normalise(each, account())
        except Malformed:
            continue
        for message in found:
            message.model_dump_json().encode()


def test_bridge_signature_lets_in_and_nothing_else_does() -> None:
    body = b'{"op":0}'
    right = bridge.signed("shared", body, NOW_S)
    CHANNEL.verify(HookRequest("POST", right, {}, body), account(), NOW_S * 1000)
    forged: list[tuple[Mapping[str, str], bytes, int]] = [
        (right, body + b" ", NOW_S), ({}, body, NOW_S), (right, body, NOW_S + 301),
        (bridge.signed("other", body, NOW_S), body, NOW_S), ({**right, "x-millstream-timestamp": "x"}, body, NOW_S),
    ]  # fmt: skip
    for headers, came, now_s in forged:
        with pytest.raises(Unauthorised):
            CHANNEL.verify(HookRequest("POST", headers, {}, came), account(), now_s * 1000)
    with pytest.raises(Unauthorised):
        CHANNEL.verify(HookRequest("POST", right, {}, body), account(credentials={}), NOW_S * 1000)


def test_send_replies_pings_nobody_and_carries_the_nonce() -> None:
    api = answered(200, {"id": "6"})
    assert sent_by(api) == Delivery("sent", ids=("6",), reason="sent")
    [(call, method, url, body, headers)] = api.asked
    assert (call, method, url) == ("send", "POST", f"{BASE}/channels/7/messages")
    assert headers == {"authorization": "Bot tide"}
    nonce = body.pop("nonce")
    assert body == {
        "content": "@everyone **tide** 12:40",
        "message_reference": {"message_id": "5", "fail_if_not_exists": False},
        "allowed_mentions": {"parse": [], "replied_user": False},
        "enforce_nonce": True,
        "flags": 4,
    }
    again = answered(200, {"id": "6"})
    sent_by(again, credentials={"token": "tide", "api_url": "http://127.0.0.1:9/api/v10/"})
    assert (again.asked[0][2], again.asked[0][3]["nonce"]) == ("http://127.0.0.1:9/api/v10/channels/7/messages", nonce)
    assert len(nonce) == 25
    row = WIRE.row("dc", url, body)
    assert (row.chat, row.reply_to, row.text) == ("7", "5", "@everyone **tide** 12:40")
    assert WIRE.took(WIRE.success(url, body, 900_001, 0))


@pytest.mark.parametrize(
    ("api", "state", "retry", "wait_s"),
    [
        (answered(429, WIRE.refusal(429, 1.5)), "not-sent", True, 1.5),
        (Recorder(PlatformResponse(429, {"Retry-After": "2"}, b"")), "not-sent", True, 2.0),
        (answered(403, {"code": 50001}), "not-sent", False, None),
        (answered(502, b"<html>"), "unknown", False, None),
        (answered(200, b"no json"), "unknown", False, None),
        (answered(200, {"id": None}), "unknown", False, None),
        (Recorder(Transient("refused")), "not-sent", True, None),
        (Recorder(EffectUnknown("late")), "unknown", False, None),
    ],
)
def test_what_came_of_a_send(api: Recorder, state: str, retry: bool, wait_s: float | None) -> None:
    found = sent_by(api)
    assert (found.state, found.retry, found.retry_after_s) == (state, retry, wait_s)
    assert len(api.asked) == 1


def test_switches_refuse_without_a_request() -> None:
    api = answered(200, {"id": "6"})
    assert sent_by(api, Switches(read_only=True)) == Delivery("not-sent", reason="read-only-mode")
    assert sent_by(api, Switches(safe_mode=True)) == Delivery("not-sent", reason="safe-mode")
    where = Target("7", "group", None, "5")
    ended(CHANNEL.acknowledge(where, "working", account(ack="typing"), api, Switches(read_only=True)))
    assert api.asked == []


def test_acknowledge_types_or_reacts() -> None:
    api = answered(204, b"")
    where = Target("7", "group", None, "5")
    for ack in ("typing", "reaction", "none"):
        for state in ("working", "done"):
            ended(CHANNEL.acknowledge(where, state, account(ack=ack), api, Switches()))  # pyright: ignore[reportArgumentType]
    eyes = f"{BASE}/channels/7/messages/5/reactions/%F0%9F%91%80/@me"
    assert [(method, url) for _, method, url, _, _ in api.asked] == [
        ("POST", f"{BASE}/channels/7/typing"), ("PUT", eyes), ("DELETE", eyes),
    ]  # fmt: skip


def test_source_must_be_what_discord_shows() -> None:
    message = normalised(**reply())
    shown = raw(**reply())
    assert ended(CHANNEL.verify_source(message, account(), answered(200, shown)))
    for wrong in ({"author": {"id": "12"}}, {"channel_id": "8"}, {"id": "6"}, {"message_reference": None}):
        assert not ended(CHANNEL.verify_source(message, account(), answered(200, shown | wrong)))
    assert not ended(CHANNEL.verify_source(message, account(), answered(404, {"code": 10008})))
    for api in (answered(500), answered(429), answered(200, b"x"), Recorder(EffectUnknown("late"))):
        with pytest.raises(Transient):
            ended(CHANNEL.verify_source(message, account(), api))


def test_identity_and_files_come_from_discord_only() -> None:
    found = ended(CHANNEL.identity(account(), answered(200, {"id": "99", "username": "tidewatch"})))
    assert (found.self_ids, found.name) == (("99",), "tidewatch")
    with pytest.raises(Refused):
        ended(CHANNEL.identity(account(), answered(401, {"code": 0})))
    api = answered(200, b"bytes")
    own = Attachment(kind="image", ref={"url": "https://cdn.discordapp.com/attachments/1/2/a.png?hm=0"})
    assert ended(CHANNEL.fetch(own, account(), api, 10)) == b"bytes"
    assert api.asked[0][4] is None
    for url in ("http://cdn.discordapp.com/a", "https://cdn.discordapp.com.evil.example/a", "https://u@x:y/", ""):
        with pytest.raises(Refused):
            ended(CHANNEL.fetch(Attachment(kind="image", ref={"url": url}), account(), api, 10))
    with pytest.raises(Refused):
        ended(CHANNEL.fetch(own.model_copy(update={"size": 11}), account(), api, 10))


def test_tables_become_code_blocks_and_deep_headings_level_three() -> None:
    table = "#### Tides\n| Port | **HW** |\n|:--|--:|\n| 青岛 | 12:40 |\n| Kiel \\| a | - |\n\n```\n| a |\n|---|\n```"
    assert CHANNEL.render(table) == (
        "### Tides\n```\nPort      HW\n--------  -----\n青岛      12:40\nKiel | a  -\n```\n\n```\n| a |\n|---|\n```"
    )
    assert CHANNEL.render("a | b\nno rule") == "a | b\nno rule"
