"""Replies to questions, encoded within the size that a ledger can hold."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import structlog
from pydantic_core import to_json

from tocsin.investigations.codec import decode_answer, encode_answer
from tocsin.model import FoundEvents, Neighborhood, QueryOutcome, Question


@dataclass(frozen=True, slots=True)
class SourceReply:
    """What came of a question; only one that was answered has content."""

    outcome: QueryOutcome
    content: Any = None
    reason: str | None = None


QuestionHandler = Callable[[Question[Any]], Awaitable[SourceReply]]
"""Asks whom a question is for. It raises only where this service itself is in trouble."""


MAX_ANSWER_BYTES = 512 * 1024
"""Bytes of JSON that one answer may have."""


def list_content_records(content: Any) -> Sequence[Any]:
    """Return what an answer has many of; nothing where it is one record."""
    match content:
        case FoundEvents(events=records) | Neighborhood(edges=records) | tuple(records):
            return records
        case _:
            return ()


def shorten_content(content: Any) -> tuple[Any, str]:
    """Return as much of an answer as there is room for, and what to say of the rest."""
    match content:
        case FoundEvents():
            kept = _take_fitting(content.events)
            words = _describe_cut(kept, content.events, "events")
            return replace(content, events=kept, complete=False), words
        case Neighborhood():
            edges = _take_fitting(content.edges)
            ends = {node for edge in edges for node in (edge.source, edge.target)}
            nodes = tuple(n for n in content.nodes if n in ends or n == content.nodes[0])
            words = _describe_cut(edges, content.edges, "edges")
            return Neighborhood(nodes=nodes, edges=edges, complete=False), words
        case _:
            kept = _take_fitting(content)
            return kept, _describe_cut(kept, content, "records")


def _take_fitting(items: Sequence[Any]) -> tuple[Any, ...]:
    sizes = accumulate(len(to_json(item, fallback=str)) + 1 for item in items)
    return tuple(items[: bisect_right(list(sizes), MAX_ANSWER_BYTES)])


def _describe_cut(kept: Sequence[Any], items: Sequence[Any], what: str) -> str:
    return f"only {len(kept)} of {len(items)} {what} are kept: there is no room for more"


_ENCODED_INLINE = 20
"""An answer of more records than this is encoded in a thread, lest everything else waits."""
_log = structlog.get_logger()


async def encode_reply(kind: str, reply: SourceReply) -> tuple[SourceReply, str | None]:
    """Return a reply as the ledger can hold it, and its content as JSON."""
    if reply.outcome is not QueryOutcome.ANSWERED:
        return reply, None
    if len(list_content_records(reply.content)) > _ENCODED_INLINE:
        return await asyncio.to_thread(_encode_reply, kind, reply)
    return _encode_reply(kind, reply)


def _encode_reply(kind: str, reply: SourceReply) -> tuple[SourceReply, str | None]:
    try:
        text, reason = encode_answer(kind, reply.content), reply.reason
        if len(text) > MAX_ANSWER_BYTES:
            content, words = shorten_content(reply.content)
            text, reason = encode_answer(kind, content), "; ".join(filter(None, (reason, words)))
        # What the ledger will say when it is read again is what is said now
        return SourceReply(reply.outcome, decode_answer(kind, text), reason), text
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        _log.warning("an answer cannot be kept", kind=kind, exc_info=error)
        return SourceReply(
            QueryOutcome.UNAVAILABLE, reason="the answer holds what cannot be kept"
        ), None
