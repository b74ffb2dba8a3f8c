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
from tocsin.model import FoundEntities, FoundEvents, Neighborhood, QueryOutcome, Question

MAX_ANSWER_BYTES = 512 * 1024
"""Maximum size of one answer, in bytes of JSON."""
_ENCODED_INLINE = 20
"""Answers of more records than this are encoded in a thread, to keep the event loop free."""
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class SourceReply:
    """The outcome of a question; only an answered question has content."""

    outcome: QueryOutcome
    content: Any = None
    reason: str | None = None


QuestionHandler = Callable[[Question[Any]], Awaitable[SourceReply]]
"""Asks the source of a question. Raises only if Tocsin itself fails, such as its database."""


async def encode_reply(kind: str, reply: SourceReply) -> tuple[SourceReply, str | None]:
    """Return a reply that fits in the ledger, and its content as JSON."""
    if reply.outcome is not QueryOutcome.ANSWERED:
        return reply, None
    if len(list_content_records(reply.content)) > _ENCODED_INLINE:
        return await asyncio.to_thread(_encode_reply, kind, reply)
    return _encode_reply(kind, reply)


def _encode_reply(kind: str, reply: SourceReply) -> tuple[SourceReply, str | None]:
    try:
        text, reason = encode_answer(kind, reply.content), reply.reason
        if len(text) > MAX_ANSWER_BYTES:
            content, note = shorten_content(reply.content)
            text, reason = encode_answer(kind, content), "; ".join(filter(None, (reason, note)))
        # Decoded again, so that the run sees what a replay will see
        return SourceReply(reply.outcome, decode_answer(kind, text), reason), text
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        _log.warning("answer cannot be stored", kind=kind, exc_info=error)
        reason = "the answer contains values that cannot be stored"
        return SourceReply(QueryOutcome.UNAVAILABLE, reason=reason), None


def list_content_records(content: Any) -> Sequence[Any]:
    """Return the records of an answer; nothing for an answer that is a single record."""
    match content:
        case (
            FoundEvents(events=records)
            | FoundEntities(entities=records)
            | Neighborhood(edges=records)
            | tuple(records)
        ):
            return records
        case _:
            return ()


def shorten_content(content: Any) -> tuple[Any, str]:
    """Return as much of an answer as fits in a ledger, and a note on what was left out."""
    match content:
        case FoundEvents():
            kept = _take_fitting(content.events)
            note = _describe_cut(kept, content.events, "events")
            return replace(content, events=kept, complete=False), note
        case FoundEntities():
            kept = _take_fitting(content.entities)
            note = _describe_cut(kept, content.entities, "entities")
            return FoundEntities(entities=kept, complete=False), note
        case Neighborhood():
            edges = _take_fitting(content.edges)
            ends = {node for edge in edges for node in (edge.source, edge.target)}
            nodes = tuple(n for n in content.nodes if n in ends or n == content.nodes[0])
            note = _describe_cut(edges, content.edges, "edges")
            return Neighborhood(nodes=nodes, edges=edges, complete=False), note
        case _:
            kept = _take_fitting(content)
            return kept, _describe_cut(kept, content, "records")


def _take_fitting(items: Sequence[Any]) -> tuple[Any, ...]:
    sizes = accumulate(len(to_json(item, fallback=str)) + 1 for item in items)
    return tuple(items[: bisect_right(list(sizes), MAX_ANSWER_BYTES)])


def _describe_cut(kept: Sequence[Any], items: Sequence[Any], what: str) -> str:
    return f"only {len(kept)} of {len(items)} {what} are stored, because the size limit was reached"
