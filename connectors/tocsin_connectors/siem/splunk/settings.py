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
        description="The URL of a search head's management port, such as "
        "https://splunk.example.com:8089."
    )
    token: SecretStr = Field(description="The Splunk authentication token.")
    web_url: ServerUrl | None = Field(
        default=None,
        description="The Splunk Web URL for links, such as https://splunk.example.com:8000.",
    )
    look_back: Duration = Field(
        default=timedelta(days=90),
        gt=timedelta(0),
        description="How far back, by event time, Tocsin looks for findings that were just "
        "indexed or reviewed.",
    )
    investigations: bool = Field(
        default=False,
        description="Whether to also read the investigations of Enterprise Security 8, which "
        "group findings.",
    )
    investigations_for: Duration = Field(
        default=timedelta(days=30),
        gt=timedelta(0),
        description="How long Tocsin keeps checking an investigation for changes, counted from its "
        "creation.",
    )
    event_indexes: tuple[IndexName, ...] = Field(
        default=("*",),
        min_length=1,
        description="The indexes in which Tocsin searches for events, as names or patterns with *.",
    )
    most_searches: int = Field(
        default=2, ge=1, le=50, description="How many searches can run at the same time."
    )
    search_timeout: Duration = Field(
        default=timedelta(seconds=90),
        gt=timedelta(0),
        description="How long a search can take. Investigations never wait longer than 120 "
        "seconds.",
    )
    refresh_after: tuple[Duration, ...] = Field(
        default=(),
        max_length=10,
        description="The delays after which Tocsin reads a new incident again. You usually do not "
        "need this setting, because findings change only through reviews, and "
        "Tocsin always reads reviews.",
    )
