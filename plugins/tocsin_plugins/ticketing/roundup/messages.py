"""Roundup messages, identified by a Message-ID of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from tocsin_plugins.ticketing.http_tracker import (
    HttpTracker,
    expect_identifier,
    expect_object,
    expect_objects,
    hash_key,
)
from tocsin_plugins.ticketing.markup import replace_unprintable

API = "/rest/data"
_MOST = 100
_END = ".ticket@tocsin>"


def description_message_id(key: str) -> str:
    """Return the Message-ID of the message that an issue begins with."""
    return f"<{hash_key(key)}{_END}"


def note_message_id(text: str, identifier: str) -> str:
    """Return the Message-ID of a later message of an issue."""
    return f"<{hash_key(f'{identifier} {text}')}.note@tocsin>"


async def expect_found(
    tracker: HttpTracker, kind: str, query: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return the objects of a class that a search finds; those that are retired are not found."""
    answer = await tracker.ask("GET", f"{API}/{quote(kind, safe='')}", query=query)
    return expect_objects(answer, "data", "collection")


async def find_messages(tracker: HttpTracker, name: str) -> list[str]:
    """Return the numbers of the messages that have this Message-ID.

    Nothing keeps there from being two: somebody on the way may have sent a request twice.
    """
    return [
        expect_identifier(it) for it in await expect_found(tracker, "msg", {"messageid:": name})
    ]


async def write_message(tracker: HttpTracker, name: str, text: str) -> str:
    """Return the number of the message that has this Message-ID, which is made if need be."""
    if known := await find_messages(tracker, name):
        return known[0]
    author = tracker.settings.username
    message = {"messageid": name, "author": author, "date": ".", "content": text}
    made = await tracker.ask("POST", f"{API}/msg", json=replace_unprintable(message))
    return expect_identifier(expect_object(made, "data"))


async def message_texts(tracker: HttpTracker, numbers: Sequence[str]) -> list[str]:
    """Return the texts of the latest of some messages; of no message that an issue begins with."""
    if not numbers:
        return []
    latest = sorted(numbers, key=int)[-_MOST:]
    query = {"id": latest, "@fields": "content,messageid", "@verbose": 3}
    shown = await expect_found(tracker, "msg", query)
    return [str(it.get("content")) for it in shown if not str(it.get("messageid")).endswith(_END)]
