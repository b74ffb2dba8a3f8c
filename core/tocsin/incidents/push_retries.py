"""Retries of quarantined pushes: the stored request is mapped again, and what maps is stored.

The record is a push that was rejected as a whole, or one of its incidents.
"""

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
    find_retried,
    find_retry_obstacle,
    get_received_at,
    get_request,
    is_whole_push,
    lock_siblings,
    mark_retried,
)
from tocsin.incidents.storage import StoreResult, identify, reject_invalid, store_batch
from tocsin.incidents.writer import IncidentWriter
from tocsin.model import Received
from tocsin.store import lock_exclusively
from tocsin.store.tables import incidents


class RetryRefusedError(ConflictError):
    """A record that cannot be retried, or still cannot be parsed; the text says why."""


@dataclass(frozen=True, slots=True)
class MappedPush:
    """A quarantined push, or a rejected part of one, that its provider has mapped again."""

    record: Row[Any]
    contents: Sequence[Received]
    writer: IncidentWriter

    @property
    def order(self) -> tuple[datetime, int]:
        """The place of the push among others: when it was received, and its ID."""
        return get_received_at(self.record), self.record.id


@dataclass(frozen=True, slots=True)
class RetryResult:
    """What a retry has stored."""

    stored: StoreResult
    records: frozenset[int]
    """The IDs of the records that are now marked as retried."""


async def map_push(writer: IncidentWriter | None, record: Row[Any]) -> MappedPush:
    """Map a quarantined push again; raises RetryRefusedError if that is impossible or fails.

    `writer` is that of the record's provider, None if this node has none.
    """
    if (obstacle := find_retry_obstacle(record)) is not None:
        raise RetryRefusedError(obstacle)
    if writer is None:
        raise RetryRefusedError(f"No push provider named {record.provider!r} is configured.")
    if type(writer.provider).unpack is Provider.unpack:
        raise RetryRefusedError("The provider's plugin cannot map stored pushes.")
    request = get_request(record)
    assert request is not None  # noqa: S101 - there is no obstacle
    try:
        parts = await asyncio.to_thread(writer.unpack, request, get_received_at(record))
    except Refused as error:
        raise _fail(str(error)) from error
    contents = [reject_invalid(PUSH_STREAM, part) for part in parts]
    if not is_whole_push(record):
        contents = [_leave_out_counted(part) for part in contents]
    rejected = [one for part in contents for one in part.rejected]
    is_all = not any(part.incidents for part in contents)
    for one in rejected:
        if is_all or one.location == record.location:
            raise _fail(f"{one.location}: {one.reason}")
    return MappedPush(record, contents, writer)


def _leave_out_counted(received: Received) -> Received:
    """Return a part without what the push lacks, which was counted when it was stored."""
    rejected = tuple(one for one in received.rejected if one.request != b"")
    return replace(received, rejected=rejected, further_rejected=0)


def _fail(reason: str) -> RetryRefusedError:
    return RetryRefusedError(f"The record still cannot be parsed: {reason}")


def store_retry(connection: Connection, push: MappedPush, by: str, now: datetime) -> RetryResult:
    """Store the incidents of a push, mark its records as retried, and return the result.

    The records are the retried one, and the others of the same request that can be parsed now.
    Incidents that were stored since the push was received stay, unless the push has a newer
    version: the times of change say so, or a retry of a push that was received earlier has stored
    them. To tell these versions, each retry of a provider needs a `now` of its own. What cannot be
    stored is quarantined again. Raises RetryRefusedError, without any change, if the record was
    retried meanwhile or another transaction has stored one of the incidents.
    """
    try:
        with connection.begin_nested():
            return _store(connection, push, by, now)
    except IntegrityError:
        reason = "Another push has stored one of the incidents at the same time. Try again."
        raise RetryRefusedError(reason) from None


def _store(connection: Connection, push: MappedPush, by: str, now: datetime) -> RetryResult:
    lock_exclusively(connection, "retries")  # each needs to see what the others have stored
    siblings, later = lock_siblings(connection, push.record), _find_later(connection, push)
    if not mark_retried(connection, [push.record.id], by, now):
        raise RetryRefusedError("The record was already retried, or no longer exists.")
    failed = {one.location for part in push.contents for one in part.rejected}
    parsed = [id_ for id_, location in siblings.items() if location not in failed]
    if parsed:
        mark_retried(connection, parsed, by, now)
    waiting = failed.intersection(siblings.values())
    batch = [_leave_out(part, waiting, later) for part in push.contents]
    if not is_whole_push(push.record):
        batch = _recount(batch, retried=1 + len(parsed))
    key, policy = StreamKey(push.writer.name, PUSH_STREAM), push.writer.policy
    stored = store_batch(connection, key, batch, policy=policy, now=now)
    return RetryResult(stored, frozenset((push.record.id, *parsed)))


def _recount(parts: Sequence[Received], retried: int) -> list[Received]:
    """Return parts that count only retried records, not the others of the same request."""
    records = retried + sum(len(part.rejected) for part in parts)
    return [replace(part, records=0 if place else records) for place, part in enumerate(parts)]


def _find_later(connection: Connection, push: MappedPush) -> Collection[str]:
    """Return the IDs of incidents that were stored since, unless this version is a newer one."""
    found = [one for received in push.contents for one in received.incidents]
    asked = {name: one.changed_at for one in found if (name := identify(one)) is not None}
    received_at = get_received_at(push.record)
    query = select(incidents.c.external_id, incidents.c.source_changed_at, incidents.c.updated_at)
    rows = connection.execute(
        query.where(
            incidents.c.provider == push.writer.name,
            incidents.c.external_id.in_(list(asked)),
            incidents.c.updated_at >= received_at,
        )
    )
    known = [row for row in rows if not _is_newer(asked[row.external_id], row.source_changed_at)]
    retried = find_retried(connection, push.writer.name, {row.updated_at for row in known})
    return {
        row.external_id
        for row in known
        if row.updated_at not in retried or retried[row.updated_at] > received_at
    }


def _is_newer(changed_at: datetime | None, stored: datetime | None) -> bool:
    return changed_at is not None and stored is not None and changed_at > stored


def _leave_out(
    received: Received, locations: Collection[str], incidents: Collection[str]
) -> Received:
    """Return a part without the rejected records at these locations, and without incidents."""
    kept = tuple(one for one in received.incidents if identify(one) not in incidents)
    rejected = tuple(one for one in received.rejected if one.location not in locations)
    return replace(received, incidents=kept, rejected=rejected)
