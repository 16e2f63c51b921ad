"""A card's visible text. Pure: what a reader sees without touching it; never values, addresses or ids."""

from shared.channels.body import parse_json
from shared.channels.feishu.limits import CARD_DEPTH, CARD_NODES, UPGRADE_PLACEHOLDER
from shared.channels.port import Json
from shared.channels.reading import map_of, text_of
from shared.errors import Malformed

# Controls: their labels are no statement, and beside them lie callback values.
_SILENT = frozenset(
    {
        "button", "action", "actions", "overflow", "select_static", "multi_select_static", "select_person",
        "multi_select_person", "select_img", "input", "date_picker", "picker_time", "picker_datetime", "checker",
        "hr", "img", "image", "img_combination", "custom_icon", "standard_icon", "audio", "video",
    }
)  # fmt: skip

# Their parts stand in one line, and `content` only repeats them.
_INLINE = frozenset({"markdown", "markdown_v1", "heading", "blockquote", "li", "code_line", "note"})

_OWN = ("title", "subtitle", "header", "content", "text", "label")
_PARTS = ("elements", "columns", "fields", "items", "contents")


def visible_text(content: dict[str, Json]) -> str:
    """The text of a card in the raw form (`json_card`) or the builder's; empty where there is nothing to read."""
    card = content
    if isinstance(content.get("json_card"), str):
        try:
            card = map_of(parse_json(text_of(content["json_card"]).encode()))
        except Malformed:
            return ""
    walk = _Walk()
    lines = [walk.text(card.get(key), CARD_DEPTH) for key in ("title", "header", "body")]
    lines += walk.parts(card.get("elements"), CARD_DEPTH)
    text = "\n".join(line.strip("\n") for line in lines if line.strip())
    return "\n".join(line for line in text.split("\n") if line.strip() != UPGRADE_PLACEHOLDER).strip()


class _Walk:
    """One reading of one card; `left` bounds its nodes."""

    def __init__(self) -> None:
        self.left = CARD_NODES

    def text(self, node: object, depth: int) -> str:
        """What `node` shows: a string, or an element with its attributes in `property` or in itself."""
        if isinstance(node, str):
            return text_of(node)
        element = map_of(node)
        if not element or depth == 0 or self.left == 0:
            return ""
        self.left -= 1
        tag = text_of(element.get("tag"))
        if tag in _SILENT:
            return ""
        if tag == "br":
            return "\n"
        if tag == "at_all":
            return "@所有人"
        attributes = map_of(element.get("property")) or element
        inner = [part for key in _PARTS for part in self.parts(attributes.get(key), depth - 1)]
        if tag in _INLINE and inner:
            return "".join(inner)
        own = [self.text(attributes.get(key), depth - 1) for key in _OWN]
        return "\n".join(part.strip("\n") for part in (*own, *inner) if part.strip())

    def parts(self, value: object, depth: int) -> list[str]:
        """What the elements of a list show; a list inside it is one line."""
        if not isinstance(value, list):
            return []
        shown: list[str] = []
        for item in value[: self.left]:  # pyright: ignore[reportUnknownVariableType]
            if isinstance(item, list):
                shown.append("".join(self.parts(item, depth - 1)) if depth > 0 else "")  # pyright: ignore[reportUnknownArgumentType]
            elif isinstance(item, dict):
                shown.append(self.text(item, depth))  # pyright: ignore[reportUnknownArgumentType]
        return [part for part in shown if part]
