"""The section [retention] of `plugins.toml`."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tocsin.fields import Duration
from tocsin.registry.plugins_file import read_plugins_file

_PROVED = timedelta(days=32)
_Proved = Annotated[Duration, Field(ge=_PROVED)]
"""A time that covers the longest period of `tocsin prove`, 31 days."""
_Kept = Annotated[Duration, Field(ge=timedelta(days=1))]


class RetentionSettings(BaseModel):
    """[retention]: how long each kind of record is kept; without a setting, forever."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    events: _Proved | None = Field(
        default=None,
        description="How long to keep events with their deliveries and attempts after all "
        "deliveries have finished. At least 32 days, because `tocsin prove` covers 31 "
        "days.",
    )
    incidents: _Proved | None = Field(
        default=None,
        description="How long to keep incidents with their alerts, entities and search documents "
        "after they last changed. Incidents stay while a delivery or a comment about "
        "them is pending. At least 32 days.",
    )
    sessions: _Kept | None = Field(
        default=None,
        description="How long to keep investigations with their steps, messages and reports, and "
        "runs of schedules, after they ended.",
    )
    search: _Kept | None = Field(
        default=None,
        description="How long to keep search documents, counted from the time of the incident or "
        "investigation. Removing an incident or investigation also removes its search "
        "document.",
    )
    graph: _Kept | None = Field(
        default=None, description="How long to keep graph edges after they were last seen."
    )
    coverage: _Proved | None = Field(
        default=None,
        description="How long to keep the coverage ledger, backfills and quarantined records. "
        "Intervals stay while stored incidents refer to them. At least 32 days.",
    )
    audit: _Proved | None = Field(
        default=None,
        description="How long to keep audit entries. Tocsin removes them only up to a sealed "
        "entry. At least 32 days.",
    )
    archive: Path | None = Field(
        default=None,
        description="Folder in which Tocsin archives events, incidents, investigations and audit "
        "entries before it removes them.",
    )

    @property
    def limits(self) -> dict[str, timedelta]:
        """How long each kind of record is kept, for the kinds that have a limit.

        Leaves out coverage intervals, because the latest ones of each source are always kept.
        """
        kinds = ("events", "incidents", "sessions", "search", "graph", "audit")
        kept = {kind: getattr(self, kind) for kind in kinds} | {"quarantine": self.coverage}
        return {kind: keep for kind, keep in kept.items() if keep is not None}

    def with_defaults(self, days: int | None, archive: Path | None) -> RetentionSettings:
        """Return these settings, with events and the archive from the environment if unset."""
        events = self.events or (days and timedelta(days=days)) or None
        return self.model_copy(update={"events": events, "archive": self.archive or archive})


def read_retention(path: Path) -> RetentionSettings:
    """Return [retention] of a file, without importing any plugin; the defaults if it is invalid."""
    file, _ = read_plugins_file(path)
    try:
        return RetentionSettings.model_validate(file.retention)
    except ValidationError:
        return RetentionSettings()
