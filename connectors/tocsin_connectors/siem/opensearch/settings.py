"""Settings of an OpenSearch provider."""

from __future__ import annotations

from datetime import timedelta

from pydantic import Field

from tocsin import Duration, ServerUrl, WindowedProvider
from tocsin_connectors.siem.indices.client import ClusterSettings


class OpenSearchSettings(ClusterSettings, WindowedProvider.Settings):
    """Settings of an OpenSearch provider."""

    changes_every: Duration = Field(
        default=timedelta(minutes=5),
        ge=timedelta(seconds=1),
        description="Interval between checks for acknowledged and ended alerts.",
    )
    changes_for: Duration = Field(
        default=timedelta(days=7),
        description="Age up to which alerts are checked for changes.",
    )
    event_index: str | None = Field(
        default=None,
        pattern=r"^[^\s/?#\\\"<>|]+$",
        description="Indices that event searches use: names or patterns with `*`, separated "
        "by commas. Default: the indices of all detectors.",
    )
    time_field: str = Field(
        default="@timestamp",
        min_length=1,
        description="Timestamp field of the documents in these indices.",
    )
    dashboard_url: ServerUrl | None = Field(
        default=None, description="OpenSearch Dashboards URL, for links."
    )
