"""What an operator can set of a Splunk provider."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import Field, SecretStr, StringConstraints

from tocsin import ApiSettings, Duration, ServerUrl, WindowedProvider

IndexName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_*-]{1,100}$")]


class SplunkSettings(WindowedProvider.Settings, ApiSettings):
    """What a Splunk provider can be told."""

    url: ServerUrl = Field(
        description="The management port of a search head: https://splunk.example.com:8089."
    )
    token: SecretStr = Field(description="An authentication token of Splunk's.")
    web_url: ServerUrl | None = Field(
        default=None,
        description="Splunk Web, such as https://splunk.example.com:8000, for links.",
    )
    look_back: Duration = Field(
        default=timedelta(days=90),
        gt=timedelta(0),
        description="How long before it was indexed or reviewed a finding's own time may lie.",
    )
    event_indexes: tuple[IndexName, ...] = Field(
        default=("*",),
        min_length=1,
        description="The indexes to look into for what an entity did, each by a name, with * for "
        "anything.",
    )
    most_searches: int = Field(
        default=2, ge=1, le=50, description="How many searches may be under way at once."
    )
    search_timeout: Duration = Field(
        default=timedelta(seconds=90),
        gt=timedelta(0),
        description="How long a search may take.",
    )
    reread_after: tuple[Duration, ...] = Field(
        default=(),
        max_length=10,
        description="How long after an incident was new to read it again. Findings change by "
        "reviews alone, which are read anyway.",
    )
