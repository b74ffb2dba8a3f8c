"""Settings of a QRadar provider."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated

from pydantic import Field, SecretStr, StringConstraints

from tocsin import ApiSettings, Duration, EntityKind, ServerUrl, WindowedProvider

PropertyName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9 _.:/()-]{1,100}$")]
"""Name that needs no escaping between double quotation marks in AQL."""
Identifier = Annotated[int, Field(ge=0, lt=2**63)]


class QRadarSettings(WindowedProvider.Settings, ApiSettings):
    """Settings of `qradar`."""

    url: ServerUrl = Field(description="Console URL, such as https://qradar.example.com.")
    token: SecretStr = Field(description="Token of an authorized service.")
    api_version: str = Field(
        default="26.0",
        pattern=r"^\d{1,3}\.\d{1,2}$",
        description="API version to use, such as 26.0. The console must support it.",
    )
    domains: tuple[Identifier, ...] = Field(
        default=(),
        description="Domain IDs. Tocsin reads only offenses of these domains, and offenses that "
        "span domains; by default, all offenses.",
    )
    rules: tuple[Identifier, ...] = Field(
        default=(),
        description="Rule IDs. Tocsin reads only offenses to which one of these rules "
        "contributed; by default, all offenses.",
    )
    search_events: bool = Field(
        default=True, description="Search Ariel for events that involve an entity."
    )
    event_properties: Mapping[EntityKind, tuple[PropertyName, ...]] = Field(
        default_factory=dict,
        description="Custom event properties that contain entities, by kind of entity.",
    )
    most_searches: int = Field(
        default=2, ge=1, le=20, description="Maximum number of concurrent searches."
    )
    search_timeout: Duration = Field(
        default=timedelta(seconds=90),
        gt=timedelta(0),
        description="Maximum duration of a search. Investigations wait at most 120 seconds.",
    )
    closing_reason_id: Identifier | None = Field(
        default=None, description="ID of the closing reason with which Tocsin closes offenses."
    )

    @property
    def properties(self) -> list[str]:
        """Custom event properties that hold entities."""
        return [name for names in self.event_properties.values() for name in names]
