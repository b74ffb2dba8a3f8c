"""Roundup messages, each identified by a Message-ID.

A message is a separate object: Tocsin first creates it and then links it to an issue. If a node
crashes in between, the Message-ID still identifies the message. An issue is identified by its first
message.
"""

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
    """Return the Message-ID of an issue's first message."""
    return f"<{hash_key(key)}{_END}"


def note_message_id(text: str, identifier: str) -> str:
    """Return the Message-ID of a later message in an issue."""
    return f"<{hash_key(f'{identifier} {text}')}.note@tocsin>"


async def expect_found(
    tracker: HttpTracker, kind: str, query: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return the objects of a class that match a search; retired objects are left out."""
    answer = await tracker.ask("GET", f"{API}/{quote(kind, safe='')}", query=query)
    return expect_objects(answer, "data", "collection")


async def find_messages(tracker: HttpTracker, name: str) -> list[str]:
    """Return the IDs of the messages with this Message-ID.

    Duplicates are possible if a proxy repeated a request.
    """
    return [
        expect_identifier(message)
        for message in await expect_found(tracker, "msg", {"messageid:": name})
    ]


async def write_message(tracker: HttpTracker, name: str, text: str) -> str:
    """Return the ID of the message with this Message-ID; create it if necessary."""
    if known := await find_messages(tracker, name):
        return known[0]
    author = tracker.settings.username
    message = {"messageid": name, "author": author, "date": ".", "content": text}
    made = await tracker.ask("POST", f"{API}/msg", json=replace_unprintable(message))
    return expect_identifier(expect_object(made, "data"))


async def message_texts(tracker: HttpTracker, numbers: Sequence[str]) -> list[str]:
    """Return the texts of the latest messages, without an issue's first message."""
    if not numbers:
        return []
    latest = sorted(numbers, key=int)[-_MOST:]
    query = {"id": latest, "@fields": "content,messageid", "@verbose": 3}
    shown = await expect_found(tracker, "msg", query)
    return [
        str(message.get("content"))
        for message in shown
        if not str(message.get("messageid")).endswith(_END)
    ]
