"""Schemas of providers and their backfills."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, ClassVar, Self

from pydantic import Field, model_validator

from tocsin import incidents
from tocsin.incidents import BackfillOrigin, BackfillState
from tocsin.model import Json
from tocsin.web.parsing import BodyModel, QueryModel, ResponseModel
from tocsin.web.schemas.examples import BACKFILL_ID, CREATED, FINISHED
from tocsin.web.schemas.fields import Limit, Timestamp, cursor_field


class StreamProgress(ResponseModel):
    """What a provider reads separately, and how far it has come."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "name": "alerts",
        "read_at": FINISHED,
        "covered_until": CREATED,
    }

    name: str
    read_at: datetime = Field(description="When its position last moved.")
    covered_until: datetime | None = Field(
        description="Everything that changed before was read; null where it does not tell by time."
    )


class ProviderItem(ResponseModel):
    """One provider, and how it does."""

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
        description="`waiting`: no node reads it at present. `pushed`: it is sent to, not read. "
        "`absent`: left out, with the reason. `removed`: this node's `plugins.toml` does not have "
        "it any more.",
        json_schema_extra={"enum": [*incidents.PROVIDER_STATES]},
    )
    outcome: str | None = Field(description="How the last read ended, in the ledger's words.")
    reason: str | None = Field(description="The last error, while it lasts.")
    failures: int = Field(description="How many rounds in a row have failed.")
    read_at: datetime | None
    succeeded_at: datetime | None
    failing_since: datetime | None
    next_read_at: datetime | None
    clock_skew_seconds: float | None = Field(
        description="How far the SIEM's clock is ahead of ours; null where that is not known."
    )
    node: str | None = Field(description="The number of the node that reads it.")
    capabilities: list[str] = Field(
        description="What it can do beside reading on: `refresh`, `backfill`, `push`."
    )
    streams: list[StreamProgress]


class ProviderList(ResponseModel):
    """Every provider."""

    providers: list[ProviderItem]
    total: int


LIST = "b"

ProviderName = Annotated[str, Field(min_length=1, max_length=100)]


class NewBackfill(BodyModel):
    """What to read."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "provider": "edge",
        "from": "2026-11-01T00:00:00Z",
        "to": "2026-11-08T00:00:00Z",
    }

    provider: ProviderName = Field(description="The provider's name in `plugins.toml`.")
    from_: Timestamp = Field(alias="from", description="Its beginning.")
    to: Timestamp = Field(
        description="Its end, which has passed; what changed at that very moment is not read."
    )
    alert: bool = Field(default=False, description="Send alerts for what is new.")

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.from_ >= self.to:
            raise ValueError("`from` must be before `to`")
        return self


class BackfillItem(ResponseModel):
    """A stretch of the past that is read, and how far that has come."""

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
    origin: BackfillOrigin = Field(description="`lost`: it could not be read when its time came.")
    alert: bool
    state: BackfillState
    pages: int
    records: int
    new: int = Field(description="Incidents that were new.")
    changed: int = Field(description="Incidents that had changed.")
    rejected: int = Field(description="Records that were kept aside.")
    from_: datetime = Field(alias="from")
    to: datetime
    progress: float | None = Field(
        description="From 0 to 1; null where what is read does not tell by time."
    )
    reason: str | None = Field(description="Why it waits or has failed.")
    created_by: str
    created_at: datetime
    updated_at: datetime
    finished_at: datetime | None
    reached: datetime | None = Field(description="Up to when everything was read.")


class BackfillQuery(QueryModel):
    """Which, and how many at once."""

    provider: ProviderName | None = Field(default=None, description="Only those of this provider.")
    limit: Limit = 50
    cursor: cursor_field(LIST) | None = None  # type: ignore[valid-type]


class BackfillList(ResponseModel):
    """One page of backfills."""

    backfills: list[BackfillItem]
    total: int
    next_cursor: str | None = Field(description="For `cursor`; null on the last page.")
