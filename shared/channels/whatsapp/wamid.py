"""The Cloud API's message ids. Pure.

`wamid.` and base64 of: 0x1C, the peer (a string), 0x15 0x02 0x00, the direction (0x11 out, 0x12 in), the stanza id (a
string), 0x00; a string is 0x18, its length in one byte, and its bytes. The peer part of one message may differ between
the send's answer and a later quote, the stanza id does not (C-11; channel facts, section 4a, "Ids").
"""

import base64
import binascii
from typing import Final

_PREFIX: Final = "wamid."
_STRING: Final = 0x18
_DIRECTIONS: Final = (b"\x11", b"\x12")


def stanza_id(wamid: str) -> str | None:
    """The stanza id inside, or None when `wamid` is not written as described above."""
    if not wamid.startswith(_PREFIX) or len(wamid) > 512:
        return None
    encoded = wamid.removeprefix(_PREFIX).rstrip("=")
    try:
        raw = base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
    except (ValueError, binascii.Error):
        return None
    if raw[:1] != b"\x1c":
        return None
    peer = _string(raw, 1)
    if peer is None:
        return None
    at = peer[1]
    if raw[at : at + 3] != b"\x15\x02\x00" or raw[at + 3 : at + 4] not in _DIRECTIONS:
        return None
    stanza = _string(raw, at + 4)
    if stanza is None or raw[stanza[1] :] != b"\x00":
        return None
    return stanza[0] or None


def index_keys(wamid: str) -> tuple[str, ...]:
    """The ids under which a message is kept and looked for: its whole id, then the stanza id inside."""
    stanza = stanza_id(wamid)
    return (wamid, stanza) if stanza else (wamid,)


def _string(raw: bytes, at: int) -> tuple[str, int] | None:
    """The string at `at` and where it ends, or None."""
    if len(raw) < at + 2 or raw[at] != _STRING:
        return None
    end = at + 2 + raw[at + 1]
    piece = raw[at + 2 : end]
    return (piece.decode(), end) if len(raw) >= end and piece.isascii() else None
