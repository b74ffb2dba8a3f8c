"""What an operator can set of a QRadar provider."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated

from pydantic import Field, SecretStr, StringConstraints

from tocsin import ApiSettings, Duration, EntityKind, ServerUrl, WindowedProvider

PropertyName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9 _.:/()-]{1,100}$")]
"""A name that can stand between double quotation marks in AQL as it is."""
Identifier = Annotated[int, Field(ge=0, lt=2**63)]


class QRadarSettings(WindowedProvider.Settings, ApiSettings):
    """The settings of `qradar`."""

    url: ServerUrl = Field(description="The console, such as https://qradar.example.com.")
    token: SecretStr = Field(description="The token of an authorized service.")
    api_version: str = Field(
        default="26.0",
        pattern=r"^\d{1,3}\.\d{1,2}$",
        description="The version of the API to speak, such as 26.0, which the console has to know.",
    )
    domains: tuple[Identifier, ...] = Field(
        default=(),
        description="Read only the offenses of these domains, by their ids, and those of several; "
        "all by default.",
    )
    rules: tuple[Identifier, ...] = Field(
        default=(),
        description="Read only offenses to which one of these rules contributed, by their ids; "
        "all by default.",
    )
    search_events: bool = Field(default=True, description="Look into Ariel for what an entity did.")
    event_properties: Mapping[EntityKind, tuple[PropertyName, ...]] = Field(
        default_factory=dict,
        description="By kind of entity, the custom properties of events that name one.",
    )
    most_searches: int = Field(
        default=2, ge=1, le=20, description="How many searches may be under way at once."
    )
    search_timeout: Duration = Field(
        default=timedelta(seconds=90),
        gt=timedelta(0),
        description="How long a search may take.",
    )
    closing_reason_id: Identifier | None = Field(
        default=None, description="The reason to close offenses with, by its id."
    )

    @property
    def properties(self) -> list[str]:
        """The custom properties of events that name anything."""
        return [name for names in self.event_properties.values() for name in names]
