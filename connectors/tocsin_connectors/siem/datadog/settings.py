"""Settings of a Datadog provider, and Datadog's sites.

An organization is on one site: https://docs.datadoghq.com/getting_started/site/
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, get_args

from pydantic import Field, SecretStr, model_validator

from tocsin import ApiSettings, ServerUrl
from tocsin_connectors.siem.lookback import LookbackProvider

SiteName = Literal[
    "datadoghq.com",
    "us3.datadoghq.com",
    "us5.datadoghq.com",
    "datadoghq.eu",
    "uk1.datadoghq.com",
    "ap1.datadoghq.com",
    "ap2.datadoghq.com",
    "ddog-gov.com",
    "us2.ddog-gov.com",
]
CONSOLES: Mapping[str, str] = MappingProxyType(
    {
        site: f"https://app.{site}" if site.count(".") == 1 else f"https://{site}"
        for site in get_args(SiteName)
    }
)
"""URLs of the web interface by site."""


class DatadogSettings(LookbackProvider.Settings, ApiSettings):
    """Settings of `datadog`."""

    site: SiteName = Field(
        default="datadoghq.com",
        description="The organization's Datadog site, such as datadoghq.eu.",
    )
    url: ServerUrl = Field(
        default="https://api.datadoghq.com",
        description="The API endpoint. Default: the site's endpoint.",
    )
    api_key: SecretStr = Field(description="The organization's API key.")
    application_key: SecretStr = Field(
        description="The application key of a user or service account."
    )
    query: str = Field(
        default="",
        max_length=4_000,
        description="The search query that selects which signals Tocsin reads, such as "
        "status:(high OR critical). By default, Tocsin reads all signals.",
    )
    log_search: bool = Field(
        default=True,
        description="Whether investigations can search the logs for events that involve an entity.",
    )

    @model_validator(mode="before")
    @classmethod
    def _add_site_endpoint(cls, given: Any) -> Any:
        match given:
            case {"site": str(site)} if site in CONSOLES:
                return {"url": f"https://api.{site}"} | given
        return given  # the error is reported for the field
