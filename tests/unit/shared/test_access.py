"""The access overlay: what was changed at run time stands over the configuration, from the next message on."""

import redis
from core_world import PREFIX, settings_of

from shared.access import Access
from shared.redis.keys import Keys

ACCOUNT = settings_of(members=["bert"], blocked=["cleo"]).accounts[0]


def access(client: redis.Redis) -> Access:
    return Access(client, Keys(PREFIX))


def test_without_an_overlay_the_account_is_the_configured_one(core_client: redis.Redis) -> None:
    assert access(core_client).overlaid(ACCOUNT) is ACCOUNT


def test_an_overlay_takes_the_place_of_a_whole_list_or_mode(core_client: redis.Redis) -> None:
    access(core_client).replace("demo", members=["dora", "邮局"], direct="members")
    seen = access(core_client).overlaid(ACCOUNT)
    assert (list(seen.members), seen.direct) == (["dora", "邮局"], "members")
    assert (seen.owners, seen.blocked) == (("anna",), ("cleo",))
    assert ACCOUNT.members == ("bert",)


def test_an_emptied_list_is_empty(core_client: redis.Redis) -> None:
    access(core_client).replace("demo", blocked=[])
    assert list(access(core_client).overlaid(ACCOUNT).blocked) == []


def test_a_later_change_keeps_the_earlier_ones(core_client: redis.Redis) -> None:
    access(core_client).replace("demo", members=["dora"])
    access(core_client).replace("demo", groups="off")
    seen = access(core_client).overlaid(ACCOUNT)
    assert (list(seen.members), seen.groups) == (["dora"], "off")


def test_another_account_notices_nothing(core_client: redis.Redis) -> None:
    access(core_client).replace("other", members=["dora"])
    assert access(core_client).overlaid(ACCOUNT) is ACCOUNT


def test_nothing_but_access_can_be_overlaid(core_client: redis.Redis) -> None:
    access(core_client).replace("demo", send_mode="off", credentials={"token": "x"}, direct="off")
    seen = access(core_client).overlaid(ACCOUNT)
    assert (seen.send_mode, seen.credentials, seen.direct) == ("auto", {}, "off")
