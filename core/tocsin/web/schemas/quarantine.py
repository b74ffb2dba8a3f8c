"""Schemas of quarantined records."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, ClassVar

from pydantic import Field

from tocsin.fields import WholeNumber
from tocsin.model import Json, Vocabulary
from tocsin.web.parsing import BodyModel, QueryModel, ResponseModel
from tocsin.web.schemas.examples import CREATED
from tocsin.web.schemas.fields import Limit, TotalRelation, cursor_field
from tocsin.web.schemas.providers import ProviderName

LIST = "q"
MAX_RETRIED = 50
"""The most records of one retry, whose incidents are stored in one transaction."""
RecordId = Annotated[int, Field(ge=1, le=10**18 - 1), WholeNumber]


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
        "retry_obstacle": "Tocsin read the record from the SIEM, so only a backfill can read it "
        "again.",
    }

    id: int
    provider: str
    stream: str
    source: str = Field(description="Stream or file of the record.")
    location: str = Field(description="Location in the source, such as `byte 10240`.")
    reason: str
    content: str = Field(
        description="The record as Tocsin received it or, for an incident of a push, as the "
        "mapping rendered it; in lists, only its first 200 bytes."
    )
    created_at: datetime = Field(description="When the record was rejected.")
    retried_at: datetime | None = Field(description="When someone retried the record successfully.")
    retried_by: str | None
    retry_obstacle: str | None = Field(
        description="Why the record cannot be retried; null if it can."
    )


class QuarantinedRecord(QuarantineItem):
    """A record that could not be parsed, with up to 16 KiB of its content."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "from": "2026-11-21T05:00:00.000Z",
        "to": "2026-11-21T05:33:00.000Z",
        "recorded_at": None,
        "request": None,
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
    request: str | None = Field(
        description="For an incident of a push: the part of the request, or the whole request, "
        "that a retry maps."
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
        "records": [17, 18],
    }

    id: int
    provider: str
    received: int = Field(
        description="Number of incidents in the record, including other rejected incidents of the "
        "same request."
    )
    new: int = Field(description="Number of new incidents.")
    changed: int = Field(description="Number of changed incidents.")
    rejected: int = Field(
        description="Number of incidents that could not be parsed, each of which is now a "
        "quarantined record."
    )
    records: list[int] = Field(
        description="IDs of the records that are now retried: this one, and others of the same "
        "request that could be parsed."
    )


class QuarantineRetries(BodyModel):
    """Quarantined records to retry."""

    EXAMPLE: ClassVar[dict[str, Json]] = {"records": [17, 18]}

    records: list[RecordId] = Field(
        min_length=1, max_length=MAX_RETRIED, description="IDs of the records."
    )


class RetryOutcome(Vocabulary):
    """Result of the retry of one of several records."""

    RETRIED = "retried"
    REFUSED = "refused"
    NOT_FOUND = "not-found"


class QuarantineRetryResult(ResponseModel):
    """Result of the retry of one record."""

    EXAMPLE: ClassVar[dict[str, Json]] = {"id": 17, "outcome": "retried"}

    id: int
    outcome: RetryOutcome = Field(description="`refused` and `not-found`: nothing changed.")
    detail: str | None = Field(description="Why the retry was refused.")


class QuarantineRetryResults(ResponseModel):
    """Result of the retry of several records."""

    EXAMPLE: ClassVar[dict[str, Json]] = {}

    results: list[QuarantineRetryResult]


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
