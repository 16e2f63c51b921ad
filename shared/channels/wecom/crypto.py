"""WeCom's encryption: AES-256-CBC, the key's first half as first block, padded to 32 bytes (doc 101033). Pure."""

import base64
import binascii
import hashlib
from typing import Final

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from shared.errors import Malformed
from shared.settings import AccountSettings

BLOCK: Final = 16
PAD: Final = 32
"""The padding is 1 to 32 bytes, more than AES' own block of 16: a common unpadder refuses the longer ones."""
RANDOM: Final = 16
LENGTH: Final = 4
"""A callback's clear text: so many random bytes, the message's length (big-endian), the message, the receiver's id
(empty for a company's own bot)."""


def signature(token: str, stamp: str, nonce: str, encrypted: str) -> bytes:
    """The msg_signature: SHA-1 over the four in order of their code points, as lower-case hex digits."""
    joined = "".join(sorted((token, stamp, nonce, encrypted)))
    return hashlib.sha1(joined.encode("utf-8", "replace"), usedforsecurity=False).hexdigest().encode()


def key_of(text: str) -> bytes:
    """The 32 bytes of a key in base64, with or without its padding. Raises Malformed."""
    try:
        key = base64.b64decode(text.strip().rstrip("=") + "=", validate=True)
    except ValueError:
        key = b""
    if len(key) != 32:
        raise Malformed("the key is not 32 bytes in base64")
    return key


def decrypted(data: bytes, key: bytes) -> bytes:
    """The clear bytes of `data`. Raises Malformed: no whole blocks, or a padding that only a wrong key leaves."""
    if not data or len(data) % BLOCK:
        raise Malformed("the encrypted data is not in whole blocks")
    opener = Cipher(algorithms.AES(key), modes.CBC(key[:BLOCK])).decryptor()
    clear = opener.update(data) + opener.finalize()
    count = clear[-1]
    if not 1 <= count <= min(PAD, len(clear)) or clear[-count:] != bytes([count]) * count:
        raise Malformed("the encrypted data does not open: the key may be another")
    return clear[:-count]


def opened(encrypted: str, account: AccountSettings) -> bytes:
    """The message inside an `encrypt` or an `echostr`, opened with the account's key. Raises Malformed."""
    try:
        data = base64.b64decode(encrypted, validate=True)
    except (binascii.Error, ValueError):
        raise Malformed("the encrypted text is not base64") from None
    clear = decrypted(data, key_of(account.credential("encoding_aes_key")))
    start = RANDOM + LENGTH
    size = int.from_bytes(clear[RANDOM:start], "big")
    if len(clear) < start or size > len(clear) - start:
        raise Malformed("the encrypted message is shorter than it says")
    return clear[start : start + size]
