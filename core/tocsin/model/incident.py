"""Incidents and their alerts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tocsin.model.entity import Entity
from tocsin.model.vocabulary import IncidentStatus, Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkFlow:
    """The two ends of a network connection; values that the SIEM does not report are None."""

    source: str | None = None
    source_port: int | None = None
    target: str | None = None
    target_port: int | None = None
    protocol: str | None = None
    """The protocol in lower case, such as `tcp`."""
    direction: str | None = None
    """The direction that the SIEM reports, in lower case, such as `inbound`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """A detection that belongs to an incident. Its `external_id` is unique within the provider."""

    external_id: str
    title: str
    severity: Severity
    occurred_at: datetime
    rule: str | None = None
    """The name of the detection rule that raised the alert, or its ID if the SIEM reports no name.
    It is the same text for every alert of the rule. None if the SIEM reports neither."""
    flow: NetworkFlow | None = None
    record: Mapping[str, Any] | None = field(default=None, compare=False, repr=False)
    """The alert as the SIEM returned it. Tocsin does not store this record if it is longer than 32
    KiB as JSON, or if the setting `store_alert_records` is false."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """The current version of a case, alert or offense in a provider's SIEM.

    Whenever the incident changes, the provider returns it again with the same `external_id`. Tocsin
    stores the latest version. It also keeps the earliest `occurred_at` and the entities, alerts,
    techniques and tactics of all earlier versions. A provider therefore does not need to repeat the
    entities and alerts of earlier versions.
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
    """Whether `severity` is a guess because the vendor's severity is unknown."""
    merged_into: str | None = None
    """The `external_id` of the incident into which this incident was merged."""
    source_url: str | None = None
    """The incident's page in the SIEM."""
    changed_at: datetime | None = None
    """The time of this version in the SIEM. An older version never overwrites a newer one."""
    techniques: tuple[str, ...] = ()
    """ATT&CK technique IDs, such as T1059.001."""
    tactics: tuple[str, ...] = ()
    """ATT&CK tactic IDs, such as TA0006. You can also use the names of tactics: Tocsin replaces the
    names that it knows with IDs."""
    entities: tuple[Entity, ...] = ()
    sources: tuple[Entity, ...] = ()
    """The entities from which the activity came, such as the client of a connection, the sender of
    an email, or the machine on which a process ran. Include only entities that the SIEM itself
    reports as sources."""
    targets: tuple[Entity, ...] = ()
    """The entities at which the activity was directed, such as the server or the recipients."""
    alerts: tuple[Alert, ...] = ()
    only_if_stored: bool = False
    """Whether this version can only update a stored incident and never create one, such as an alert
    that was hidden in the SIEM after Tocsin had read it.
    """
