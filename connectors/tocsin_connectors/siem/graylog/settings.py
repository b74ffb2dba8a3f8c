"""Settings of a Graylog provider."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import Field, SecretStr, StringConstraints

from tocsin import ApiSettings, Duration, ServerUrl, WindowedProvider

EventTypeName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]{1,100}$")]


class GraylogSettings(WindowedProvider.Settings, ApiSettings):
    """Settings of `graylog`."""

    url: ServerUrl = Field(
        description="The Graylog URL without /api, such as https://graylog.example.org."
    )
    token: SecretStr = Field(description="The access token of a Graylog user.")
    console_url: ServerUrl | None = Field(
        default=None, description="The URL of the web interface, for links. Default: `url`."
    )
    events: Literal["alerts", "all"] = Field(
        default="alerts",
        description="Which events Tocsin reads: alerts (events with notifications) or all.",
    )
    excluded_types: tuple[EventTypeName, ...] = Field(
        default=("system-notifications-v1",),
        max_length=50,
        description="The types of event definitions whose events do not become incidents. By "
        "default, Tocsin excludes notifications about Graylog itself.",
    )
    refresh_after: tuple[Duration, ...] = Field(
        default=(),
        max_length=10,
        description="The delays after which Tocsin reads a new incident again. You do not need "
        "this setting, because events in Graylog do not change.",
    )
    settle_delay: Duration = Field(
        default=timedelta(minutes=1),
        le=timedelta(days=1),
        description="How old an event must be before Tocsin reads it, so that Graylog has time "
        "to index it.",
    )
