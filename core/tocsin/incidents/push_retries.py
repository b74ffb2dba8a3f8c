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
    find_retry_obstacle,
    get_request,
    is_whole_push,
    lock_siblings,
    mark_retried,
)
from tocsin.incidents.storage import StoreResult, identify, reject_invalid, store_batch
from tocsin.incidents.writer import IncidentWriter
from tocsin.model import Received
from tocsin.store.tables import incidents


class RetryRefusedError(ConflictError):
    """A record that cannot be retried, or still cannot be parsed; the text says why."""


class RetryConflictError(RetryRefusedError):
    """Another transaction has stored an incident meanwhile, so this one must be rolled back."""


@dataclass(frozen=True, slots=True)
class MappedPush:
    """A quarantined push, or a rejected part of one, that its provider has mapped again."""

    record: Row[Any]
    contents: Sequence[Received]
    writer: IncidentWriter


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
    received_at = record.received_at or record.created_at
    if type(writer.provider).unpack is Provider.unpack:
        raise RetryRefusedError("The provider's plugin cannot map stored pushes.")
    request = get_request(record)
    assert request is not None  # noqa: S101 - there is no obstacle
    try:
        parts = await asyncio.to_thread(writer.unpack, request, received_at)
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
    Incidents that were stored since the push was received stay, unless their times of change show
    that the push has a newer version. What cannot be stored is
    quarantined again. Raises RetryRefusedError if the record was retried meanwhile, and
    RetryConflictError if another transaction has stored one of the incidents.
    """
    siblings = lock_siblings(connection, push.record)
    if not mark_retried(connection, [push.record.id], by, now):
        raise RetryRefusedError("The record was already retried, or no longer exists.")
    failed = {one.location for part in push.contents for one in part.rejected}
    parsed = [id_ for id_, location in siblings.items() if location not in failed]
    if parsed:
        mark_retried(connection, parsed, by, now)
    waiting, later = failed.intersection(siblings.values()), _find_later(connection, push)
    batch = [_leave_out(part, waiting, later) for part in push.contents]
    if not is_whole_push(push.record):
        batch = _recount(batch, retried=1 + len(parsed))
    key, policy = StreamKey(push.writer.name, PUSH_STREAM), push.writer.policy
    try:
        stored = store_batch(connection, key, batch, policy=policy, now=now)
    except IntegrityError:
        reason = "Another push has stored one of the incidents at the same time. Try again."
        raise RetryConflictError(reason) from None
    return RetryResult(stored, frozenset((push.record.id, *parsed)))


def _recount(parts: Sequence[Received], retried: int) -> list[Received]:
    """Return parts that count only retried records, not the others of the same request."""
    records = retried + sum(len(part.rejected) for part in parts)
    return [replace(part, records=0 if place else records) for place, part in enumerate(parts)]


def _find_later(connection: Connection, push: MappedPush) -> Collection[str]:
    """Return the IDs of incidents that were stored since, unless this version is a newer one."""
    found = [one for received in push.contents for one in received.incidents]
    asked = {name: one.changed_at for one in found if (name := identify(one)) is not None}
    known = connection.execute(
        select(incidents.c.external_id, incidents.c.source_changed_at).where(
            incidents.c.provider == push.writer.name,
            incidents.c.external_id.in_(list(asked)),
            incidents.c.updated_at >= (push.record.received_at or push.record.created_at),
        )
    )
    return {name for name, changed_at in known if not _is_newer(asked[name], changed_at)}


def _is_newer(changed_at: datetime | None, stored: datetime | None) -> bool:
    return changed_at is not None and stored is not None and changed_at > stored


def _leave_out(
    received: Received, locations: Collection[str], incidents: Collection[str]
) -> Received:
    """Return a part without the rejected records at these locations, and without incidents."""
    kept = tuple(one for one in received.incidents if identify(one) not in incidents)
    rejected = tuple(one for one in received.rejected if one.location not in locations)
    return replace(received, incidents=kept, rejected=rejected)
