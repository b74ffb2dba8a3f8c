"""Incidents and their alerts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from tocsin.model.entity import Entity
from tocsin.model.vocabulary import IncidentStatus, Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """A detection inside an incident; `external_id` is unique within its provider."""

    external_id: str
    title: str
    severity: Severity
    occurred_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """A case, alert or offense of a provider, in its current version.

    A provider returns the same `external_id` again whenever something changes. Text and states of
    the latest version win; entities and alerts are added to the known ones, and `occurred_at` is
    the earliest seen, so a provider may return only what is new.
    """

    external_id: str
    title: str
    severity: Severity
    occurred_at: datetime
    status: IncidentStatus = IncidentStatus.NEW
    external_number: str | None = None
    description: str = ""
    raw_severity: str | None = None
    raw_status: str | None = None
    severity_assumed: bool = False
    """Whether `severity` is a guess, because the vendor's severity is unknown."""
    merged_into: str | None = None
    """The `external_id` of the incident that this one was merged into."""
    source_url: str | None = None
    """The incident's page in the SIEM."""
    changed_at: datetime | None = None
    """The SIEM's own time of this version; an older version never overwrites a newer one."""
    techniques: tuple[str, ...] = ()
    """ATT&CK technique IDs, such as T1059.001."""
    tactics: tuple[str, ...] = ()
    """ATT&CK tactic IDs, such as TA0006; names are stored as IDs where they are known."""
    entities: tuple[Entity, ...] = ()
    sources: tuple[Entity, ...] = ()
    """The entities from which the activity came: the client of a connection, the sender of an
    email, the machine on which a process ran. Only as reported by the SIEM, never inferred.
    """
    targets: tuple[Entity, ...] = ()
    """The entities at which the activity was directed, such as the server or the recipients."""
    alerts: tuple[Alert, ...] = ()
    only_if_stored: bool = False
    """Whether this version only updates a stored incident, such as an alert that was hidden after
    it was read.
    """
