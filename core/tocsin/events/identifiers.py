"""Identifiers that sort by the time at which they were made."""

from __future__ import annotations

from ulid import ULID


def new_id(kind: str) -> str:
    """Return a new identifier such as `evt_01JD...`; it holds no dot, as Standard Webhooks asks."""
    return f"{kind}_{ULID()}"
