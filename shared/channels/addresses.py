"""Addresses that come with an event or an answer: where a request, or a secret in it, may go. Pure."""

import re
from typing import Final
from urllib.parse import SplitResult, urlsplit

from shared.settings import AccountSettings

_ADDRESS: Final = re.compile(r"[!-\[\]-~]+")
"""Visible ASCII without the backslash: of anything else two parsers may read different hosts."""


def parts_of(url: str) -> SplitResult | None:
    """The address taken apart; None when it is none, could be read in two ways, or names a user or password."""
    if not _ADDRESS.fullmatch(url):
        return None
    try:
        found = urlsplit(url)
        _ = found.port
    except ValueError:
        return None
    return found if found.hostname and "@" not in found.netloc else None


def is_stand_in(asked: SplitResult, account: AccountSettings) -> bool:
    """True for the server that `credentials.api_url` names."""
    named = parts_of(account.credential("api_url"))
    return named is not None and (asked.scheme, asked.hostname, asked.port) == (
        named.scheme,
        named.hostname,
        named.port,
    )


def is_tls_on(asked: SplitResult, ends: tuple[str, ...]) -> bool:
    """True for a host with one of the `ends`, over TLS on the usual port."""
    return asked.scheme == "https" and asked.port in (None, 443) and (asked.hostname or "").endswith(ends)
