"""Settings of a Splunk provider."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import Field, SecretStr, StringConstraints

from tocsin import ApiSettings, Duration, ServerUrl, WindowedProvider

IndexName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_*-]{1,100}$")]


class SplunkSettings(WindowedProvider.Settings, ApiSettings):
    """Settings of a Splunk provider."""

    url: ServerUrl = Field(
        description="URL of a search head's management port, such as "
        "https://splunk.example.com:8089."
    )
    token: SecretStr = Field(description="Splunk authentication token.")
    web_url: ServerUrl | None = Field(
        default=None,
        description="Splunk Web URL, such as https://splunk.example.com:8000, for links.",
    )
    look_back: Duration = Field(
        default=timedelta(days=90),
        gt=timedelta(0),
        description="Maximum time between the event time of a finding and the time at which the "
        "finding is indexed or reviewed.",
    )
    investigations: bool = Field(
        default=False,
        description="Also read the investigations of Enterprise Security 8, which group findings.",
    )
    investigations_for: Duration = Field(
        default=timedelta(days=30),
        gt=timedelta(0),
        description="Maximum age of the investigations that are checked for changes.",
    )
    event_indexes: tuple[IndexName, ...] = Field(
        default=("*",),
        min_length=1,
        description="Indexes that event searches use, each a name or a pattern with *.",
    )
    most_searches: int = Field(
        default=2, ge=1, le=50, description="Maximum number of concurrent searches."
    )
    search_timeout: Duration = Field(
        default=timedelta(seconds=90),
        gt=timedelta(0),
        description="Maximum duration of a search. Investigations wait at most 120 seconds.",
    )
    refresh_after: tuple[Duration, ...] = Field(
        default=(),
        max_length=10,
        description="Ages of a new incident at which Tocsin reads it again. Findings change only "
        "through reviews, which Tocsin always reads.",
    )
