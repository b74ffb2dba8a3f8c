"""Schemas of audits of a period."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, ClassVar

from pydantic import BeforeValidator, Field

from tocsin import accounting
from tocsin.durations import parse_iso_duration
from tocsin.model import EventType, Json
from tocsin.web.parsing import QueryModel, ResponseModel
from tocsin.web.schemas.deliveries import DeliveryStatusItem
from tocsin.web.schemas.examples import DELIVERY_ID, EVENT_ID, FINISHED
from tocsin.web.schemas.fields import Timestamp
from tocsin.web.schemas.incident_trace import SourceInterval
from tocsin.web.schemas.push import WaitingPushes
from tocsin.web.schemas.status_mismatches import RemoteStatusSummary
from tocsin.web.schemas.stops import PastStop

_DAY = timedelta(days=1)


def _parse_timespan(text: str) -> timedelta:
    timespan = parse_iso_duration(text)
    if timespan > accounting.LONGEST_PERIOD:
        raise ValueError(f"use at most P{accounting.LONGEST_PERIOD.days}D")
    return timespan


class ProofQuery(QueryModel):
    """Period to audit."""

    timespan: Annotated[timedelta, BeforeValidator(_parse_timespan)] = Field(
        default=_DAY,
        description="Length of the period: an ISO 8601 duration, by default `P1D`, at most "
        f"`P{accounting.LONGEST_PERIOD.days}D`.",
    )
    until: Timestamp | None = Field(
        default=None,
        description="End of the period: an ISO 8601 time with a time zone, by default now.",
    )


class CoveredSource(SourceInterval):
    """Coverage of one source."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "provider": "edge",
        "stream": "changed",
        "source": "/var/log/suricata/eve.json",
        "from": 0,
        "to": 81_920,
        "intervals": 24,
        "stretches": 24,
        "records": 310,
        "changed": 0,
        "rejected": 0,
        "read_at": FINISHED,
    }

    intervals: int = Field(description="Number of intervals that were read.")
    stretches: int = Field(description="Former name of `intervals`.", deprecated=True)
    records: int
    new: int = Field(description="Number of new incidents.")
    changed: int = Field(description="Number of changed incidents.")
    rejected: int = Field(description="Number of quarantined records.")
    read_at: datetime


class CoverageGap(SourceInterval):
    """A gap between intervals that were read."""

    found_at: datetime


class UnreadInterval(SourceInterval):
    """An interval that was not read, with the reason."""

    reason: str
    found_at: datetime


class StreamFailure(ResponseModel):
    """A period in which a stream could not be read."""

    provider: str
    stream: str
    outcome: str
    reason: str | None
    from_: datetime = Field(alias="from")
    to: datetime
    read_since: bool


class SilentStream(ResponseModel):
    """A time-based stream whose next read is overdue although no failure was recorded."""

    provider: str
    stream: str
    read_at: datetime


class DestinationCounts(ResponseModel):
    """Number of deliveries of a destination, by state."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "destination": "soar",
        "delivered": 0,
        "on_hold": 0,
        "dead": 0,
    }

    destination: str
    delivered: int
    pending: int
    on_hold: int
    dead: int


class OutstandingDelivery(DeliveryStatusItem):
    """A delivery that has not arrived."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "id": DELIVERY_ID,
        "destination": "soar",
        "reason": "503: busy",
        "due_at": FINISHED,
        "event_id": EVENT_ID,
        "subject": "incident:4711",
    }

    event_id: str
    event_type: EventType
    subject: str
    timestamp: datetime = Field(description="Time of the event.")
    attempts: int


class UnexplainedItem(ResponseModel):
    """An anomaly that the records do not explain."""

    kind: str = Field(json_schema_extra={"enum": [*accounting.ANOMALY_KINDS]})
    what: str
    since: datetime
    detail: str


class TriageAuthor(ResponseModel):
    """Number of triage changes by a user or credential."""

    EXAMPLE: ClassVar[dict[str, Json]] = {"by": "ana", "actor": "admin:ana"}

    by: str
    actor: str = Field(description="The user or credential, as in the audit log.")
    changes: int = Field(description="Number of changes and comments.")
    incidents: int = Field(description="Number of changed incidents.")


class PeriodTriage(ResponseModel):
    """Triage in a period, without incidents that have since been removed."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "dispositions": {
            "true-positive": 0,
            "benign-true-positive": 0,
            "false-positive": 1,
            "duplicate": 0,
            "undetermined": 0,
        },
    }

    authors: list[TriageAuthor]
    dispositions: dict[str, int] = Field(
        description="Number of incidents whose disposition was set in the period, by disposition."
    )


class Proof(ResponseModel):
    """Audit of a period."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "since": "2026-11-20T06:10:00.000Z",
        "until": FINISHED,
        "gaps": [],
        "lost": [],
        "passed_over": [],
        "failures": [],
        "silent": [],
        "quarantined": 0,
        "waiting_pushes": [],
        "stops": [],
        "incidents": {
            "alerted": 1,
            "below-threshold": 0,
            "first-seen-closed": 0,
            "quiet": 0,
            "rose-unalerted": 0,
        },
        "events": dict.fromkeys(accounting.EVENT_OUTCOMES, 0) | {"pending": 1},
        "unaccounted": [],
    }

    since: datetime
    until: datetime
    coverage: list[CoveredSource]
    gaps: list[CoverageGap]
    lost: list[UnreadInterval] = Field(
        description="Intervals that Tocsin failed to read and has not read since."
    )
    passed_over: list[UnreadInterval] = Field(
        description="Intervals that Tocsin skipped because of the configuration."
    )
    failures: list[StreamFailure]
    silent: list[SilentStream]
    quarantined: int = Field(description="Number of records that could not be parsed.")
    waiting_pushes: list[WaitingPushes] = Field(
        description="Pushes that the intake has accepted but that are not stored yet."
    )
    stops: list[PastStop] = Field(description="Emergency stops in the period, newest first.")
    incidents: dict[str, int] = Field(
        description="Number of new incidents, by alert outcome. `removed`, if present, is the "
        "number of incidents that retention has removed since then."
    )
    triage: PeriodTriage
    remote_statuses: list[RemoteStatusSummary]
    siem_closures: dict[str, int] = Field(
        description="Number of incident closures in SIEMs, by state."
    )
    events: dict[str, int] = Field(description="Number of events, by outcome.")
    changes: dict[str, int] = Field(
        description="Number of changes that Tocsin sends to plugins or destinations, by outcome."
    )
    destinations: list[DestinationCounts]
    not_arrived: list[OutstandingDelivery] = Field(
        description="The oldest deliveries that have not arrived, at most "
        f"{accounting.MAX_LISTED}. The limit also applies to `gaps`, `lost`, `passed_over` and "
        "`failures`."
    )
    not_arrived_total: int
    unaccounted: list[UnexplainedItem] = Field(
        description="Anomalies that the records do not explain, at most "
        f"{accounting.MAX_LISTED} of each kind. Empty if everything is accounted for."
    )
