"""Schemas of providers and their backfills."""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated, ClassVar, Self

from pydantic import Field, model_validator

from tocsin import incidents
from tocsin.incidents import BackfillOrigin, BackfillState
from tocsin.model import Json
from tocsin.shapes import DriftProblem
from tocsin.web.parsing import BodyModel, QueryModel, ResponseModel
from tocsin.web.schemas.examples import BACKFILL_ID, CREATED, EXPIRES, FINISHED
from tocsin.web.schemas.fields import Limit, Timestamp, cursor_field
from tocsin.web.schemas.stops import CurrentStop, StopChange


class StreamProgress(ResponseModel):
    """A stream of a provider and its progress."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "name": "alerts",
        "read_at": FINISHED,
        "covered_until": CREATED,
    }

    name: str
    read_at: datetime = Field(description="When a read last made progress.")
    covered_until: datetime | None = Field(
        description="Tocsin has read all changes before this time; null if the stream is not "
        "time-based."
    )


class DriftedField(ResponseModel):
    """A required field that, for a day, was missing from all records or had a different type."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "kind": "changed",
        "field": "severity_name",
        "problem": "missing",
        "expected": "string",
        "since": CREATED,
        "records": 48,
        "appeared": ["severity_label"],
    }

    kind: str = Field(description="Stream of the records, or the kind of detail in them.")
    field: str = Field(description="Path of the field.")
    problem: DriftProblem
    expected: str = Field(description="Types that the provider understands, separated by `|`.")
    found: str | None = Field(description="Types found instead; null if the field is missing.")
    since: datetime = Field(
        description="Time of the first record in which the field is missing or has the wrong type."
    )
    records: int = Field(description="Number of records sampled since the time in `since`.")
    appeared: list[str] = Field(
        description="New fields in the same object, which might replace the field."
    )


class RetiringApi(ResponseModel):
    """A vendor API that the provider uses and that is near or past its end of life."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "api": "Example API v1",
        "ends_on": "2027-02-01",
        "advice": "update Tocsin before then",
        "source": "https://vendor.example.com/notices/api-v1",
    }

    api: str
    ends_on: date
    advice: str = Field(description="Recommended action.")
    source: str = Field(description="URL of the vendor's announcement.")


class ProviderItem(ResponseModel):
    """A provider and its status."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "name": "edge",
        "plugin": "crowdsec",
        "outcome": "read",
        "failures": 0,
        "read_at": FINISHED,
        "succeeded_at": FINISHED,
        "next_read_at": FINISHED,
        "clock_skew_seconds": 0.4,
        "node": "8173530148173502",
        "capabilities": ["backfill", "refresh"],
    }

    name: str
    plugin: str
    state: str = Field(
        description="`waiting`: no node is reading the provider. `degraded`: a node reads the "
        "provider, but with the defect in `reason`. `pushed`: the provider only receives "
        "pushes. `disabled`: a person has disabled the provider. `absent`: the provider is "
        "not loaded; `reason` says why. `removed`: this node's `plugins.toml` no longer "
        "contains the provider.",
        json_schema_extra={"enum": [*incidents.PROVIDER_STATES]},
    )
    stop: CurrentStop | None = Field(description="Current emergency stop, if any.")
    outcome: str | None = Field(description="Outcome of the last read, as in the coverage ledger.")
    reason: str | None = Field(description="Current error; null if there is none.")
    failures: int = Field(description="Number of consecutive failed reads.")
    read_at: datetime | None
    succeeded_at: datetime | None
    failing_since: datetime | None
    next_read_at: datetime | None
    clock_skew_seconds: float | None = Field(
        description="How many seconds the SIEM's clock is ahead; null if unknown."
    )
    node: str | None = Field(description="Number of the node that reads the provider.")
    capabilities: list[str] = Field(
        description="Capabilities beyond reading new records: `refresh`, `backfill`, `push`."
    )
    streams: list[StreamProgress]
    drift: list[DriftedField] = Field(
        description="Required fields that, for a day, have been missing or have had a different "
        "type."
    )
    retirements: list[RetiringApi] = Field(
        description="Vendor APIs that have been retired or will be within 180 days."
    )


class ProviderChange(StopChange):
    """A request to disable or enable a provider."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "enabled": False,
        "until": EXPIRES,
        "reason": "The SIEM is overloaded",
    }

    enabled: bool = Field(description="Whether Tocsin reads the provider and accepts its pushes.")


class ProviderList(ResponseModel):
    """All providers."""

    providers: list[ProviderItem]
    total: int


LIST = "b"

ProviderName = Annotated[str, Field(min_length=1, max_length=100)]


class NewBackfill(BodyModel):
    """A request for a backfill of a time range."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "provider": "edge",
        "from": "2026-11-01T00:00:00Z",
        "to": "2026-11-08T00:00:00Z",
    }

    provider: ProviderName = Field(description="Name of the provider in `plugins.toml`.")
    from_: Timestamp = Field(alias="from", description="Start of the range.")
    to: Timestamp = Field(description="End of the range (exclusive), which must be in the past.")
    alert: bool = Field(default=False, description="Whether to send alerts for new incidents.")

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.from_ >= self.to:
            raise ValueError("`from` must be before `to`")
        return self


class BackfillItem(ResponseModel):
    """A backfill of a time range, with its progress."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "id": BACKFILL_ID,
        "provider": "edge",
        "pages": 12,
        "records": 1180,
        "new": 37,
        "changed": 4,
        "rejected": 0,
        "from": "2026-11-01T00:00:00.000Z",
        "to": "2026-11-08T00:00:00.000Z",
        "progress": 0.25,
        "created_by": "ana",
        "created_at": FINISHED,
        "updated_at": FINISHED,
        "reached": "2026-11-02T18:00:00.000Z",
    }

    id: str
    provider: str
    origin: BackfillOrigin = Field(
        description="`operator`: a person requested the backfill. `lost`: Tocsin started the "
        "backfill because an earlier read of the range failed."
    )
    alert: bool
    state: BackfillState
    pages: int
    records: int
    new: int = Field(description="Number of new incidents.")
    changed: int = Field(description="Number of changed incidents.")
    rejected: int = Field(description="Number of quarantined records.")
    from_: datetime = Field(alias="from")
    to: datetime
    progress: float | None = Field(
        description="How much of the backfill is complete, from 0 to 1; null if the source is "
        "not time-based."
    )
    reason: str | None = Field(description="Why the backfill is waiting or has failed.")
    created_by: str
    created_at: datetime
    updated_at: datetime
    finished_at: datetime | None
    reached: datetime | None = Field(description="Time up to which all changes were read.")


class BackfillQuery(QueryModel):
    """Query parameters for listing backfills."""

    provider: ProviderName | None = Field(default=None, description="Filter by provider.")
    limit: Limit = 50
    cursor: cursor_field(LIST) | None = None  # type: ignore[valid-type]


class BackfillList(ResponseModel):
    """One page of backfills."""

    backfills: list[BackfillItem]
    total: int
    next_cursor: str | None = Field(description="Next `cursor`; null on the last page.")
