"""Dispositions from tickets that people close."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection

from tocsin import audit
from tocsin.incidents.triage import UNTRIAGED, load_triage
from tocsin.incidents.triage_changes import KEEP, Author, TriageUpdate, lock_incident, update_triage
from tocsin.model import DispositionSource, RemoteResolution


def apply_resolution(
    connection: Connection, resolution: RemoteResolution, now: datetime, *, public_url: str
) -> bool:
    """Give an incident the disposition of its closed ticket, and return whether it changed.

    A reopened ticket removes the disposition that it gave. Any other disposition stays: people who
    triage in Tocsin take precedence.
    """
    number, name = resolution.incident_number, resolution.destination
    if lock_incident(connection, number) is None:
        return False
    triage = load_triage(connection, [number]).get(number, UNTRIAGED)
    given = (triage["disposition_source"], triage["disposition_by"])
    is_own = given == (DispositionSource.TICKET, name)
    is_removal = resolution.disposition is None
    if not is_own and (triage["disposition"] is not None or is_removal):
        return False
    author = Author(name, f"destination:{name}", DispositionSource.TICKET)
    reason = KEEP if resolution.disposition is None else resolution.reason
    change = TriageUpdate(disposition=resolution.disposition, reason=reason)
    changed = update_triage(connection, number, change, author, now, public_url=public_url)
    if changed:
        target = f"incident:{number}"
        audit.record_local(
            connection, now, author.actor, "incident.triage", target=target, details=changed
        )
    return bool(changed)
