"""Providers: how the SIEMs are read."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field
from sqlalchemy import Connection

from tocsin import incidents
from tocsin.web.context import RequestContext, Response
from tocsin.web.parsing import ResponseModel


class StreamProgress(ResponseModel):
    """What a provider reads separately, and how far it has come."""

    name: str
    read_at: datetime = Field(description="When its position last moved.")
    covered_until: datetime | None = Field(
        description="Everything that changed before was read; null where it does not tell by time."
    )


class ProviderItem(ResponseModel):
    """One provider, and how it does."""

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
        description="What it can do beside reading on: `reread`, `backfill`, `push`."
    )
    streams: list[StreamProgress]


class ProviderList(ResponseModel):
    """Every provider."""

    providers: list[ProviderItem]
    total: int


def list_providers(connection: Connection, call: RequestContext) -> Response:
    """Answer every provider, and how it does."""
    services = call.services
    found = incidents.list_providers(connection, services.providers, services.clock.now())
    return Response({"providers": found, "total": len(found)})
