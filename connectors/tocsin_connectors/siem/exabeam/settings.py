"""Settings of an Exabeam provider, and Exabeam's regions.

A subscription is in one region: https://developers.exabeam.com/exabeam/docs/exabeam-api-base-urls
"""

from __future__ import annotations

from typing import Any, Literal, Self, get_args

from pydantic import Field, SecretStr, model_validator

from tocsin import ApiSettings, ServerUrl
from tocsin_connectors.siem.lookback import LookbackProvider

RegionName = Literal["us-west", "us-east", "ca", "eu", "uk", "ch", "sa", "sg", "jp", "au"]


class ExabeamSettings(LookbackProvider.Settings, ApiSettings):
    """Settings of `exabeam`."""

    region: RegionName = Field(
        default="us-west", description="The region of the subscription, such as us-west or eu."
    )
    url: ServerUrl = Field(
        default="https://api.us-west.exabeam.cloud",
        description="The API endpoint. Default: the region's endpoint.",
    )
    client_id: str = Field(min_length=1, description="The ID of the API key.")
    client_secret: SecretStr = Field(description="The secret of the API key.")
    records: Literal["cases", "alerts"] = Field(
        default="cases",
        description="Which Threat Center records become incidents: cases or alerts.",
    )
    filter: str = Field(
        default="",
        max_length=4_000,
        description="The query that selects which cases or alerts Tocsin reads, such as NOT "
        'priority:"LOW". By default, Tocsin reads all of them.',
    )
    active_stage: str = Field(
        default="INVESTIGATION",
        min_length=1,
        max_length=100,
        description="The stage to which Tocsin moves a case if `write_back_status` is set.",
    )
    event_search: bool = Field(
        default=True,
        description="Whether investigations can search for events that involve an entity.",
    )
    web_url: ServerUrl | None = Field(
        default=None,
        description="The URL of a case in the browser, without the case ID. Tocsin uses this "
        "URL for links.",
    )

    @model_validator(mode="before")
    @classmethod
    def _add_region_endpoint(cls, given: Any) -> Any:
        match given:
            case {"region": str(region)} if region in get_args(RegionName):
                return {"url": f"https://api.{region}.exabeam.cloud"} | given
        return given  # the error is reported for the field

    @model_validator(mode="after")
    def _check_write_back(self) -> Self:
        if self.records == "alerts" and self.writes:
            raise ValueError('write-back is only available with records = "cases"')
        return self
