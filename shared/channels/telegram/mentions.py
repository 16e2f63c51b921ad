"""Who is addressed in a Telegram text. Pure. Offsets and lengths of entities count UTF-16 units."""

from dataclasses import dataclass

from shared.channels.port import Json
from shared.channels.reading import id_of, int_of, map_of, maps_of, text_of
from shared.channels.telegram.limits import MAX_ENTITIES
from shared.settings import AccountSettings


@dataclass(frozen=True, slots=True)
class Self:
    """What is known of the bot: ids, and its user name in lower case without the @ (empty: not known)."""

    ids: frozenset[str]
    username: str

    def is_self(self, user: dict[str, Json]) -> bool:
        """True when `user` is this bot."""
        if id_of(user.get("id")) in self.ids:
            return True
        name = text_of(user.get("username")).lower()
        return bool(name) and name == self.username and not self.ids

    @classmethod
    def of(cls, account: AccountSettings) -> "Self":
        """From the account's own ids, its name, and the id that starts every bot token."""
        ids = set(account.all_self_ids)
        head, colon, _ = account.credential("token").partition(":")
        if colon and head.isascii() and head.isdigit():
            ids.add(head)
        return cls(frozenset(ids), account.self_name.removeprefix("@").lower())


@dataclass(frozen=True, slots=True)
class Mentions:
    """What the entities of a text say. `text` is without the bot's own mention, trimmed.

    others: ids, or @names where only a name is given, of everybody mentioned, the bot included.
    unsure: a @name was mentioned and the bot's own name is not known, so that it may be the bot.
    """

    text: str
    others: tuple[str, ...]
    mine: bool
    unsure: bool


def mentions_of(message: dict[str, Json], body: str, me: Self) -> Mentions:
    """Read `entities` (of a text) or `caption_entities` (of a caption)."""
    entities = maps_of(message.get("entities" if text_of(message.get("text")) else "caption_entities"), MAX_ENTITIES)
    units = body.encode("utf-16-le")
    others: list[str] = []
    cuts: list[tuple[int, int]] = []
    mine = unsure = False
    for entity in entities:
        offset, length = int_of(entity.get("offset")), int_of(entity.get("length"))
        if offset is None or length is None or offset < 0 or length <= 0 or 2 * offset >= len(units):
            continue
        start, end = 2 * offset, min(2 * (offset + length), len(units))
        named = units[start:end].decode("utf-16-le", "replace")
        kind = entity.get("type")
        if kind == "text_mention":
            user = map_of(entity.get("user"))
            others.append(id_of(user.get("id")) or named)
            hit = me.is_self(user)
        elif kind == "mention" or (kind == "bot_command" and "@" in named):
            name = named[named.index("@") + 1 :].lower() if "@" in named else named.lower()
            others.append("@" + name)
            hit = bool(me.username) and name == me.username
            unsure = unsure or not me.username
        else:
            continue
        mine = mine or hit
        if hit and kind != "bot_command":
            cuts.append((start, end))
    return Mentions(_without(units, cuts), tuple(dict.fromkeys(others)), mine, unsure)


def _without(units: bytes, cuts: list[tuple[int, int]]) -> str:
    kept: list[bytes] = []
    at = 0
    for start, end in sorted(cuts):
        kept.append(units[at : max(start, at)])
        at = max(at, end)
    return b"".join([*kept, units[at:]]).decode("utf-16-le", "replace").strip()
