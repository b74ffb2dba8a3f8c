"""Replies as the ledger can hold them."""

from __future__ import annotations

import asyncio

import structlog

from tocsin.investigations.answering.bounding import (
    MAX_ANSWER_BYTES,
    list_content_records,
    shorten_content,
)
from tocsin.investigations.answering.reply import SourceReply
from tocsin.investigations.codec import decode_answer, encode_answer
from tocsin.model import QueryOutcome

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
