"""Incidents that are read again after retention removed them, and keep their numbers."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

from sqlalchemy import Connection, delete, exists, select

from tocsin.incidents.storage.merge import IncidentChange, RemovedIncident
from tocsin.store.tables import removed_incidents

_r = removed_incidents.c
_COLUMNS = (_r.number, _r.alert_outcome, _r.created_at, _r.updated_at)
_has_any = select(exists(select(_r.number)))


def digest_identity(provider: str, external_id: str) -> str:
    """Return the digest by which a removed incident is recognized."""
    return blake2b(f"{provider}\0{external_id}".encode(), digest_size=16).hexdigest()


def find_removed(connection: Connection, number: int) -> RemovedIncident | None:
    """Return what is left of a removed incident, None if none of this number was removed."""
    row = connection.execute(select(*_COLUMNS).where(_r.number == number)).one_or_none()
    return None if row is None else RemovedIncident(*row)


def recall_removed(connection: Connection, provider: str, new: Sequence[IncidentChange]) -> None:
    """Mark the new incidents that were removed, and forget their removal."""
    if not new or not connection.scalar(_has_any):
        return
    by_digest = {digest_identity(provider, change.incident.external_id): change for change in new}
    query = select(_r.digest, *_COLUMNS).where(_r.digest.in_(by_digest))
    for digest, *known in connection.execute(query):
        by_digest[digest].removed = RemovedIncident(*known)
    numbers = [change.removed.number for change in new if change.removed]
    if numbers:
        connection.execute(delete(removed_incidents).where(_r.number.in_(numbers)))
