"""Feishu's encrypted bodies: AES-256-CBC, the key SHA-256 of the encrypt key, the IV the first 16 bytes. Pure."""

import base64
import binascii
import hashlib

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from shared.channels.body import parse_json
from shared.channels.port import Json
from shared.channels.reading import map_of
from shared.errors import Malformed
from shared.settings import AccountSettings

_BLOCK = 16


def opened(body: Json, account: AccountSettings) -> dict[str, Json]:
    """The event, decrypted where it is `{"encrypt": …}`. Raises Malformed: no key, wrong key, not JSON, no object."""
    outer = map_of(body)
    if "encrypt" in outer:
        key = account.credential("encrypt_key")
        if not key:
            raise Malformed("the body is encrypted and the account has no credentials.encrypt_key")
        body = parse_json(decrypted(outer["encrypt"], key))
    if not isinstance(body, dict):
        raise Malformed("the event is not an object")
    return map_of(body)


def decrypted(encrypted: object, encrypt_key: str) -> bytes:
    """The plain bytes of base64 text. Raises Malformed: not base64, no whole blocks, wrong padding."""
    if not isinstance(encrypted, str):
        raise Malformed("the encrypted body is no text")
    try:
        raw = base64.b64decode(encrypted.encode(), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        raise Malformed("the encrypted body is not base64") from None
    if len(raw) < 2 * _BLOCK or len(raw) % _BLOCK:
        raise Malformed("the encrypted body has no whole blocks")
    key = hashlib.sha256(encrypt_key.encode("utf-8", "surrogatepass")).digest()
    opening = Cipher(algorithms.AES(key), modes.CBC(raw[:_BLOCK])).decryptor()
    padded = opening.update(raw[_BLOCK:]) + opening.finalize()
    padding = padded[-1]
    if not 1 <= padding <= _BLOCK or padded[-padding:] != bytes([padding]) * padding:
        raise Malformed("the encrypted body was not encrypted with this key")
    return padded[:-padding]
