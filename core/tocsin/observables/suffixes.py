"""Domain names: their ASCII form and public suffixes."""

from __future__ import annotations

from functools import cache, lru_cache

import idna
from publicsuffixlist import PublicSuffixList

RESERVED_SUFFIXES = frozenset({"example", "onion"})
"""Suffixes that appear in reports but not in the list (RFC 6761, RFC 7686)."""

LOCAL_SUFFIXES = frozenset(
    {"corp", "home", "internal", "intranet", "lan", "local", "localdomain", "private"}
)
"""Suffixes of private networks (RFC 6762, appendix G)."""

_NAME_LIMIT = 253  # RFC 1035, section 2.3.4


def ascii_name(name: str) -> str | None:
    """Return a name in lower case and ASCII (RFC 5891), without a trailing dot.

    None if it is not a valid DNS name.
    """
    name = name.rstrip(".").lower()
    if not name.isascii() and len(name) <= _NAME_LIMIT:
        try:
            name = idna.encode(name, uts46=True).decode()
        except idna.IDNAError:
            return None
    return name if 0 < len(name) <= _NAME_LIMIT else None


@cache
def _suffix_list() -> PublicSuffixList:
    """Return the list of public suffixes, which takes long to parse."""
    return PublicSuffixList(accept_unknown=False, only_icann=True)


@lru_cache(maxsize=16_384)
def public_suffix(name: str) -> str | None:
    """Return the public suffix below which `name` (in ASCII) is registered.

    None if it has none, or is one itself.
    """
    head, _, last = name.rpartition(".")
    if head and last in RESERVED_SUFFIXES:
        return last
    registered = _suffix_list().privatesuffix(name)
    return registered.partition(".")[2] if registered else None


def is_local(name: str) -> bool:
    """Return whether `name` is below a suffix of private networks."""
    head, _, last = name.rpartition(".")
    return bool(head) and (last in LOCAL_SUFFIXES or name.endswith(".home.arpa"))
