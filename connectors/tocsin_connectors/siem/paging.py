"""The tokens with which SIEMs are asked for the next page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tocsin import Broken


def get_page_token(record: Mapping[str, Any], member: str) -> str | None:
    """Return the page token at a member, whole and as it is; None where there is none.

    Raises `Broken` for what is no token: taken for none, it would end the pages too early.
    """
    token = record.get(member)
    if token is None or isinstance(token, str):
        return token or None
    raise Broken(f"the token of the next page is none (`{member}`): {token!r:.60}")
