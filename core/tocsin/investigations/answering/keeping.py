"""Replies as the ledger can hold them."""

from __future__ import annotations

import asyncio

import structlog

from tocsin.investigations.answering.bounding import LARGEST, bounded, records_of
from tocsin.investigations.answering.reply import Reply
from tocsin.investigations.codec import decode_answer, encode_answer
from tocsin.model import Outcome

_FEW = 20
"""An answer of more records than this is encoded in a thread, lest everything else waits."""
_log = structlog.get_logger()


async def kept(kind: str, reply: Reply) -> tuple[Reply, str | None]:
    """Return a reply as the ledger can hold it, and its content as JSON."""
    if reply.outcome is not Outcome.ANSWERED:
        return reply, None
    if len(records_of(reply.content)) > _FEW:
        return await asyncio.to_thread(_encoded, kind, reply)
    return _encoded(kind, reply)


def _encoded(kind: str, reply: Reply) -> tuple[Reply, str | None]:
    try:
        text, reason = encode_answer(kind, reply.content), reply.reason
        if len(text) > LARGEST:
            content, words = bounded(reply.content)
            text, reason = encode_answer(kind, content), "; ".join(filter(None, (reason, words)))
        # What the ledger will say when it is read again is what is said now
        return Reply(reply.outcome, decode_answer(kind, text), reason), text
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        _log.warning("an answer cannot be kept", kind=kind, exc_info=error)
        return Reply(Outcome.UNAVAILABLE, reason="the answer holds what cannot be kept"), None
