"""Retries of quarantined pushes: the stored request is mapped again, and what maps is stored."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, select
from sqlalchemy.exc import IntegrityError

from tocsin.errors import ConflictError, Refused
from tocsin.hookspecs import Provider
from tocsin.incidents.coverage import (
    PUSH_STREAM,
    StreamKey,
    find_retry_obstacle,
    mark_retried,
)
from tocsin.incidents.storage import StoreResult, identify, store_batch
from tocsin.incidents.writer import IncidentWriter
from tocsin.model import Received
from tocsin.store.tables import incidents


class RetryRefusedError(ConflictError):
    """A record that cannot be retried, or still cannot be parsed; the text says why."""


@dataclass(frozen=True, slots=True)
class MappedPush:
    """A quarantined push that its provider has mapped again."""

    record: int
    received_at: datetime
    contents: Sequence[Received]
    writer: IncidentWriter


async def map_push(writer: IncidentWriter | None, record: Row[Any]) -> MappedPush:
    """Map a quarantined push again; raises RetryRefusedError if that is impossible or fails.

    `writer` is that of the record's provider, None if this node has none.
    """
    if (obstacle := find_retry_obstacle(record)) is not None:
        raise RetryRefusedError(obstacle)
    if writer is None:
        raise RetryRefusedError(f"No push provider named {record.provider!r} is configured.")
    received_at = record.created_at
    if type(writer.provider).unpack is Provider.unpack:
        raise RetryRefusedError("The provider's plugin cannot map stored pushes.")
    try:
        contents = await asyncio.to_thread(writer.unpack, record.content, received_at)
    except Refused as error:
        raise _fail(str(error)) from error
    rejected = [one for received in contents for one in received.rejected]
    if rejected and not any(received.incidents for received in contents):
        raise _fail(f"{rejected[0].location}: {rejected[0].reason}")
    return MappedPush(record.id, received_at, contents, writer)


def _fail(reason: str) -> RetryRefusedError:
    return RetryRefusedError(f"The record still cannot be parsed: {reason}")


def store_retry(connection: Connection, push: MappedPush, by: str, now: datetime) -> StoreResult:
    """Store the incidents of a push, mark its record as retried, and return the result.

    Incidents that a later push may have changed stay as they are. What cannot be stored is
    quarantined again. Raises RetryRefusedError if the record was retried meanwhile, or if another
    transaction has stored one of the incidents.
    """
    if not mark_retried(connection, push.record, by, now):
        raise RetryRefusedError("The record was already retried, or no longer exists.")
    key, policy = StreamKey(push.writer.name, PUSH_STREAM), push.writer.policy
    later = _find_later(connection, push)
    batch = [_leave_out(received, later) for received in push.contents]
    try:
        return store_batch(connection, key, batch, policy=policy, now=now)
    except IntegrityError:
        reason = "Another push has stored one of the incidents at the same time. Try again."
        raise RetryRefusedError(reason) from None


def _find_later(connection: Connection, push: MappedPush) -> Collection[str]:
    """Return the IDs of incidents that have changed since, unless their times tell the order."""
    found = [one for received in push.contents for one in received.incidents]
    asked = {name: one.changed_at for one in found if (name := identify(one)) is not None}
    known = connection.execute(
        select(incidents.c.external_id, incidents.c.source_changed_at).where(
            incidents.c.provider == push.writer.name,
            incidents.c.external_id.in_(list(asked)),
            incidents.c.updated_at > push.received_at,
        )
    )
    return {row.external_id for row in known if None in (row.source_changed_at, asked[row[0]])}


def _leave_out(received: Received, later: Collection[str]) -> Received:
    kept = tuple(one for one in received.incidents if identify(one) not in later)
    return replace(received, incidents=kept)
