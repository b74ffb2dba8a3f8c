"""Schemas of quarantined records."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from pydantic import Field

from tocsin.model import Json
from tocsin.web.parsing import QueryModel, ResponseModel
from tocsin.web.schemas.examples import CREATED
from tocsin.web.schemas.fields import Limit, TotalRelation, cursor_field
from tocsin.web.schemas.providers import ProviderName

LIST = "q"


class QuarantineItem(ResponseModel):
    """A record that could not be parsed."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "id": 17,
        "provider": "edge",
        "stream": "alerts",
        "source": "alerts",
        "location": "changed from 2026-11-21T05:00:00+00:00 to 2026-11-21T05:33:00+00:00",
        "reason": "created_at: missing",
        "content": '{"id": 4711, "scenario": "crowdsecurity/ssh-bf"}',
        "created_at": CREATED,
        "retried_at": None,
        "retried_by": None,
    }

    id: int
    provider: str
    stream: str
    source: str = Field(description="Stream or file of the record.")
    location: str = Field(description="Location in the source, such as `byte 10240`.")
    reason: str
    content: str = Field(
        description="The record as Tocsin received it; in lists, only its first 200 bytes."
    )
    created_at: datetime = Field(description="When the record was rejected.")
    retried_at: datetime | None = Field(description="When someone retried the record successfully.")
    retried_by: str | None


class QuarantinedRecord(QuarantineItem):
    """A record that could not be parsed, with up to 16 KiB of its content."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "from": "2026-11-21T05:00:00.000Z",
        "to": "2026-11-21T05:33:00.000Z",
        "recorded_at": None,
        "retry_obstacle": "Tocsin read the record from the SIEM, so only a backfill can read it "
        "again.",
    }

    from_: datetime | None = Field(
        alias="from",
        description="Start of the range that was being read when the record was rejected. To "
        "read the record again, backfill this range. Null if the source is not time-based.",
    )
    to: datetime | None = Field(description="End of the time range (exclusive).")
    recorded_at: datetime | None = Field(
        description="Time in the content of the record, if Tocsin finds one."
    )
    retry_obstacle: str | None = Field(
        description="Why the record cannot be retried; null if it can."
    )


class QuarantineRetry(ResponseModel):
    """Result of the retry of a quarantined record."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "id": 17,
        "provider": "edge",
        "received": 1,
        "new": 1,
        "changed": 0,
        "rejected": 0,
    }

    id: int
    provider: str
    received: int = Field(description="Number of incidents in the record.")
    new: int = Field(description="Number of new incidents.")
    changed: int = Field(description="Number of changed incidents.")
    rejected: int = Field(
        description="Number of incidents that could not be parsed, each of which is now a "
        "quarantined record."
    )


class QuarantineQuery(QueryModel):
    """Query parameters for listing quarantined records."""

    provider: ProviderName | None = Field(default=None, description="Filter by provider.")
    limit: Limit = 50
    cursor: cursor_field(LIST) | None = None  # type: ignore[valid-type]


class QuarantineList(ResponseModel):
    """One page of quarantined records."""

    records: list[QuarantineItem]
    total: int = Field(description="Number of matches, counted up to 10,000.")
    total_relation: TotalRelation
    next_cursor: str | None = Field(description="Next `cursor`; null on the last page.")
