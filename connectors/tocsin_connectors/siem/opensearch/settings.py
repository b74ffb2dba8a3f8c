"""What an operator can set of an OpenSearch provider."""

from __future__ import annotations

from datetime import timedelta

from pydantic import Field

from tocsin import Duration, ServerUrl, WindowedProvider
from tocsin_connectors.siem.indices.client import ClusterSettings


class OpenSearchSettings(ClusterSettings, WindowedProvider.Settings):
    """What an OpenSearch provider can be told."""

    changes_every: Duration = Field(
        default=timedelta(minutes=5),
        ge=timedelta(seconds=1),
        description="How often to look whether alerts were acknowledged or have ended.",
    )
    changes_for: Duration = Field(
        default=timedelta(days=7),
        description="How long after an alert began to look for that.",
    )
    event_index: str | None = Field(
        default=None,
        pattern=r"^[^\s/?#\\\"<>|]+$",
        description="The indices that investigations search, with `*` for anything, separated "
        "by commas; those of all detectors, unless it is set.",
    )
    time_field: str = Field(
        default="@timestamp", min_length=1, description="Where their documents have their time."
    )
    dashboard_url: ServerUrl | None = Field(
        default=None, description="Where OpenSearch Dashboards is, for links to it."
    )
