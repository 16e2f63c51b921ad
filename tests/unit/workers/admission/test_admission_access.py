"""Roles, access modes and who is addressed (behaviour.md, section 1, Access; section 2, step 5)."""

import pytest
from admission_world import account, item, private

from shared.admission import addressed, admits, role_of


@pytest.mark.parametrize(
    ("sender", "system", "role"),
    [("1", False, "owner"), ("2", False, "member"), ("3", False, "guest"), ("0", True, "system"), ("", False, "guest")],
)
def test_a_role_comes_from_the_lists(sender: str, system: bool, role: str) -> None:
    message = item(sender_id=sender, system=system).envelope.message
    assert role_of(message, account()) == role


@pytest.mark.parametrize("sender", ["1", "2", "3"])
def test_blocked_beats_every_other_role(sender: str) -> None:
    settings = account(blocked=[sender])
    message = item(sender_id=sender).envelope.message
    assert role_of(message, settings) == "blocked"
    assert not admits("blocked", message, settings)


def test_g6_an_owner_stays_an_owner_in_a_system_message() -> None:
    """The owner lane is tested before the system sender."""
    assert role_of(item(sender_id="1", system=True).envelope.message, account()) == "owner"


@pytest.mark.parametrize(
    ("mode", "admitted"),
    [
        ("open", {"owner", "member", "guest", "system"}),
        ("members", {"owner", "member"}),
        ("owners", {"owner"}),
        ("off", set[str]()),
    ],
)
def test_direct_modes(mode: str, admitted: set[str]) -> None:
    message, settings = private().envelope.message, account(direct=mode, groups="off")
    assert {role for role in ("owner", "member", "guest", "system", "blocked") if admits(role, message, settings)} == (
        admitted
    )


@pytest.mark.parametrize(
    ("mode", "chat", "admitted"),
    [
        ("open", "-100", {"owner", "member", "guest"}),
        ("listed", "-100", {"owner", "member", "guest"}),
        ("listed", "-200", {"owner"}),
        ("off", "-100", set[str]()),
    ],
)
def test_group_modes(mode: str, chat: str, admitted: set[str]) -> None:
    message = item(chat_id=chat).envelope.message
    settings = account(groups=mode, listed_groups=["-100"], direct="off")
    assert {role for role in ("owner", "member", "guest", "blocked") if admits(role, message, settings)} == admitted


def test_a_private_only_bot_is_direct_members_and_groups_off() -> None:
    settings = account(direct="members", groups="off")
    assert admits("member", private().envelope.message, settings)
    assert not admits("owner", item().envelope.message, settings)


@pytest.mark.parametrize(
    ("changes", "known_id", "expected"),
    [
        ({"mentions_bot": True}, "8001", True),
        ({"mentions_bot": False, "mentions": ["8001"]}, "8001", True),
        ({"mentions_bot": False, "mentions": ["9"]}, "8001", False),
        ({"mentions_bot": False, "mentions_all": True}, "8001", True),
        ({"mentions_bot": False, "addressed": True}, "8001", True),
        ({"mentions_bot": False, "text": "@8001 你怎么看"}, "8001", False),
        ({"mentions_bot": None, "mentions": ["9"]}, "", True),
        ({"mentions_bot": False, "self_known": False, "mentions": ["9"]}, "", True),
        ({"mentions_bot": False, "self_known": False, "mentions": []}, "", False),
        ({"mentions_bot": False, "self_known": True, "mentions": ["9"]}, "", False),
        ({"mentions_bot": None, "self_known": False, "mentions": ["9"]}, "8001", False),
    ],
)
def test_g15_to_g19_addressed(changes: dict[str, object], known_id: str, expected: bool) -> None:
    message = item(**changes).envelope.message
    assert addressed(message, account(self_id=known_id)) is expected


def test_everyone_addresses_can_be_switched_off() -> None:
    message = item(mentions_bot=False, mentions_all=True).envelope.message
    assert not addressed(message, account(everyone_addresses=False))
