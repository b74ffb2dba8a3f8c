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

    url: ServerUrl = Field(
        description="The URL of the QRadar console, such as https://qradar.example.com."
    )
    token: SecretStr = Field(description="The token of an authorized service.")
    api_version: str = Field(
        default="26.0",
        pattern=r"^\d{1,3}\.\d{1,2}$",
        description="The API version that Tocsin uses, such as 26.0. The QRadar console must "
        "support this version.",
    )
    domains: tuple[Identifier, ...] = Field(
        default=(),
        description="The IDs of the domains whose offenses Tocsin reads. Tocsin always reads "
        "offenses that span several domains. By default, Tocsin reads all offenses.",
    )
    rules: tuple[Identifier, ...] = Field(
        default=(),
        description="The IDs of rules. Tocsin reads only offenses to which at least one of "
        "these rules contributed. By default, Tocsin reads all offenses.",
    )
    search_events: bool = Field(
        default=True,
        description="Whether investigations can search Ariel for events that involve an entity.",
    )
    event_properties: Mapping[EntityKind, tuple[PropertyName, ...]] = Field(
        default_factory=dict,
        description="The custom event properties that contain entities, by entity kind.",
    )
    most_searches: int = Field(
        default=2, ge=1, le=20, description="How many searches can run at the same time."
    )
    search_timeout: Duration = Field(
        default=timedelta(seconds=90),
        gt=timedelta(0),
        description="How long a search can take. Investigations never wait longer than 120 "
        "seconds.",
    )
    closing_reason_id: Identifier | None = Field(
        default=None,
        description="The ID of the closing reason that Tocsin uses when it closes offenses.",
    )

    @property
    def properties(self) -> list[str]:
        """Custom event properties that hold entities."""
        return [name for names in self.event_properties.values() for name in names]
