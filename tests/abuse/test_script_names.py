"""Every script with hostile names in every place where a name can stand, on a real server: none fails, no key lies
outside the prefix, nothing of anybody else changes."""

import json
import re
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.index import IndexEntry, OutboundIndex
from shared.redis.embedded import Kind, available_kinds
from shared.redis.scripts import Scripts
from shared.settings import IndexSettings
from tests.abuse.hostile import examples
from tests.integration import script_scenes
from tests.integration.script_scenes import LANES, SCENES, P, Rig
from tests.integration.world import KINDS

LUA = Path(__file__).parents[2] / "shared" / "redis" / "lua"
HERE: Kind = next(kind for kind in KINDS if kind in available_kinds())

AWKWARD = [
    'a"b', "a'b", "a\\b", "\\", '"', "%", "100%", "%1%%", "%d+", "@@NAME@@", "]==]", "]] .. os.exit() --", "{}", "[]",
    "\x00", "\x00\x01\xff", "a\r\nb", "*", "?", "[a-z]", "t:", "t:held", "..", "/", " ", "1e309", "-1", "0", "nan",
    "inf", "9" * 400, "0x10", "null", "true", "👩\u200d👩", "\u202e", "\ufeff", "\U0010ffff", "é" * 100, "x" * 65_536,
    "${IFS}", ":", "::", "a:b", "lane:", ":ready", "nobody", "*1\r\n$4\r\nPING\r\n",
]  # fmt: skip
"""Without `|` and `,`: these separate our own ids, which are ULIDs and hashes, inside of values."""
name = st.sampled_from(AWKWARD) | st.text(st.characters(exclude_characters="|,", exclude_categories=["Cs"]), min_size=1)
data = st.sampled_from([*AWKWARD, "a|b,c", "|", ","]) | st.text(st.characters(exclude_categories=["Cs"]))
NAMES = ("m1", "m2", "m3", "l1", "w1", "w2", "d1", "s1", "q1", "k1")
"""What the scenes call their messages, lane and tokens."""
_NAMED = re.compile(rf"(?<![A-Za-z0-9])({'|'.join(NAMES)})(?![A-Za-z0-9])")


def one(id_: str, **more: Any) -> dict[str, Any]:
    """An item for `accept`."""
    (item,) = script_scenes.accepted(id_)["items"]
    return {**item, **more}


class Renaming:
    """The scripts, called with other names than the scene writes."""

    def __init__(self, scripts: Scripts, names: dict[str, str]) -> None:
        self._scripts = scripts
        self.names = names

    def there(self, value: Any) -> Any:
        if isinstance(value, str):
            return _NAMED.sub(lambda found: self.names[found[1]], value)
        if isinstance(value, dict):
            return {self.there(key): self.there(item) for key, item in value.items()}
        return [self.there(item) for item in value] if isinstance(value, list) else value

    def call(self, script: str, now_ms: int, /, **arguments: Any) -> Any:
        nonce = arguments.pop("nonce", "")
        reply = self._scripts.call(script, now_ms, nonce=nonce, **self.there(arguments))
        assert "failed:" not in str(reply)
        return reply


class RenamedRig(Rig):
    """The scenes' rig under other names, beside somebody who has nothing to do with it."""

    def begin(self, names: dict[str, str]) -> None:
        self.client.flushall()
        self.scripts = Scripts(self.client, P, late_ms=script_scenes.LATE_MS * 600)
        self.call("accept", items=[one("x1", part="9", lane="other", account="b")], max_depth=0, max_account_depth=0)
        self.theirs = self.others()
        self.renaming = Renaming(self.scripts, names)
        self.scripts = self.renaming  # type: ignore[assignment]

    def hget(self, id_: str, name: str) -> str:
        return super().hget(self.renaming.there(id_), name)

    def held(self, name: str) -> str:
        return super().held(self.renaming.there(name))

    def others(self) -> list[Any]:
        records = self.client.hgetall(f"{P}rec:x1"), self.client.hgetall(f"{P}lane:other")
        places = f"{P}at:admission:9", f"{P}lane:other:pending"
        return [*records, *(self.client.zrange(place, 0, -1, withscores=True) for place in places)]

    def judge(self) -> None:
        assert [key for key in self.client.scan_iter("*", count=1000) if not key.startswith(P)] == []
        assert self.others() == self.theirs
        known = {f"{P}rec:{item}{end}" for item in self.renaming.names.values() for end in ("", "-o")} | {f"{P}rec:x1"}
        assert set(self.client.scan_iter(f"{P}rec:*", count=1000)) <= known


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Generator[RenamedRig]:
    with script_scenes.rig(tmp_path_factory.mktemp("server"), HERE) as made:
        yield RenamedRig(made.client)


def named(words: list[str]) -> dict[str, str]:
    """A table of names in which no two are the same."""
    distinct = [word if words.index(word) == n else f"{word}{n}" for n, word in enumerate(words)]
    return dict(zip(NAMES, distinct, strict=True))


def restore(rig: Rig) -> None:
    rig.accept("m1")
    rig.client.delete(f"{P}at:admission:7")
    assert rig.call("restore", id="m1", **LANES) == 1
    assert rig.claim()[0] == "ok"


def renew(rig: Rig) -> None:
    assert rig.call("hold", name="m1", token="w1") == 1
    held = [["m1", "w1", "m2"], ["m3", "w1", ""]]
    assert rig.call("renew", held=held, **{"assert": False}) == ["ok", "lost"]


def cursor(rig: Rig) -> None:
    rig.call("hold", name="m1", token="w1")
    assert rig.call("cursor", name="m1", token="w1", key=f"{P}cursor:l1", value="m3") == 1
    assert rig.call("cursor", name="m1", token="w2", key=f"{P}cursor:l1", value="m3") == 0


def admit(rig: Rig) -> None:
    asked = {"busy": f"{P}busy:l1", "rates": [[f"{P}rate:l1", 100, 1000]], "most": 2, "busy_ms": 1000}
    assert rig.call("admit", member="m1", **asked) == 0
    assert rig.call("admit", member="m2", **asked) == 0
    assert rig.call("admit", member="m3", **asked) > 0


def open_(rig: Rig) -> None:
    rig.accept("m1")
    rig.claim()
    rig.move(rig.to("m1", "parked:pause", fields={"back": "quotes"}))
    assert rig.call("open", why="pause", limit=9, **LANES) == 1
    assert rig.call("take", stage="quotes", id="m1", token="q1")[0] == "ok"


def repush(rig: Rig) -> None:
    rig.accept("m1")
    rig.claim()
    rig.move(rig.to("m1", "quotes"))
    rig.client.delete(f"{P}wake.quotes")
    rig.call("repush", partitions=4, harnesses=["default", "l1"], wait_ms=-1, limit=9, **LANES)
    assert rig.client.llen(f"{P}wake.quotes") == 1


PLAYED: dict[str, Callable[[Rig], None]] = {
    "restore": restore, "renew": renew, "cursor": cursor, "admit": admit, "open": open_, "repush": repush,
}  # fmt: skip
"""Scripts of which no scene tells; `index` has a test of its own below."""


@given(st.sampled_from(sorted(SCENES)), st.lists(name, min_size=len(NAMES), max_size=len(NAMES)))
@examples(60)
def test_a_scene_under_hostile_names_is_the_same_scene(rig: RenamedRig, scene: str, words: list[str]) -> None:
    rig.begin(named(words))
    script, arguments, later = SCENES[scene](rig)
    reply = rig.call(script, **arguments)
    assert reply not in (["lost"], "lost", ["gone"], "gone", ["none"], ["empty"])
    rig.judge()
    later()
    rig.judge()


@given(st.sampled_from(sorted(PLAYED)), st.lists(name, min_size=len(NAMES), max_size=len(NAMES)))
@examples(60)
def test_the_other_scripts_under_hostile_names(rig: RenamedRig, script: str, words: list[str]) -> None:
    rig.begin(named(words))
    PLAYED[script](rig)
    rig.judge()


@given(st.lists(data, min_size=1, max_size=5), data, data, data)
@examples(70)
def test_q_index_entries_with_hostile_ids_are_found_by_them(
    rig: RenamedRig, ids: list[str], scope: str, said: str, account: str
) -> None:
    rig.begin(named(list(NAMES)))
    index = OutboundIndex(Scripts(rig.client, P), account or "a", IndexSettings())
    now = rig.now()
    index.add(IndexEntry(scope, "another", now, now, ("other",)), now, "first")
    assert index.add(IndexEntry(scope, said, now, now, tuple(ids)), now, "second") == 2
    for id_ in ids:
        found = index.find(scope, [id_], None, now)
        assert (found.hit, found.text) == ("twice", "") if id_ == "other" else ("id", said[: IndexSettings().max_chars])
    assert index.find(f"{scope}x", ids, None, now).hit == "none"
    rig.judge()


@given(data, data, data, data)
@examples(60)
def test_what_comes_from_outside_is_kept_as_it_came(
    rig: RenamedRig, env: str, log: str, detail: str, channel: str
) -> None:
    rig.begin(named(list(NAMES)))
    rig.call("accept", items=[one("m1", env=env, channel=channel)], max_depth=0, max_account_depth=0)
    rig.claim()
    rig.move({**rig.frozen("m1"), "effects": [["SET", f"{P}warned:1", log], ["HSET", f"{P}access:a", detail, log]]})
    rig.call("start", harness="default", turn=script_scenes.turn_of("d1"), **LANES)
    rig.move(script_scenes.answered(rig, "m1"), holder="turn:m1", token="d1")
    rig.call("take", stage="delivery", id="m1", token="s1")
    assert rig.call("send", **script_scenes.asking("m1")) == ["yes"]
    assert rig.call("ledger", **{**script_scenes.told("m1"), "detail": detail}) == "sent"
    assert rig.hget("m1", "env") == env
    assert rig.hget("m1", "channel") == channel
    assert rig.client.get(f"{P}warned:1") == log
    assert rig.client.hget(f"{P}access:a", detail) == log
    assert rig.client.hget(f"{P}ledger:m1-o", "0").split("|", 3)[3] == detail
    rig.judge()


def test_no_script_is_left_out(rig: RenamedRig) -> None:
    rig.begin(named(list(NAMES)))
    played = {*PLAYED, "index", *(scene(_fresh(rig))[0] for scene in SCENES.values())}
    there = {path.stem for path in LUA.glob("*.lua")} - {"core"}
    assert there <= played, "a script that is in no scene of tests/integration/script_scenes.py and not in PLAYED"


def _fresh(rig: RenamedRig) -> RenamedRig:
    rig.begin(named(list(NAMES)))
    return rig


def test_a_number_that_lua_cannot_hold_stays_text(rig: RenamedRig) -> None:
    rig.begin(named(list(NAMES)))
    item = one("m1", env=json.dumps({"n": 10**400}), at=9_007_199_254_740_993)
    rig.call("accept", items=[item], max_depth=0, max_account_depth=0)
    assert json.loads(rig.hget("m1", "env")) == {"n": 10**400}
    rig.judge()
