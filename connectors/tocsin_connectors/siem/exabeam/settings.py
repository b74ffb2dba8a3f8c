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
        default="us-west", description="Region of the subscription: us-west, us-east, eu, ..."
    )
    url: ServerUrl = Field(
        default="https://api.us-west.exabeam.cloud",
        description="API endpoint. Default: the region's endpoint.",
    )
    client_id: str = Field(min_length=1, description="ID of an API key.")
    client_secret: SecretStr = Field(description="Secret of the API key.")
    records: Literal["cases", "alerts"] = Field(
        default="cases", description="Records that become incidents: Threat Center cases or alerts."
    )
    filter: str = Field(
        default="",
        max_length=4_000,
        description='Query that selects the cases or alerts to read, such as NOT priority:"LOW"; '
        "by default, all.",
    )
    active_stage: str = Field(
        default="INVESTIGATION",
        min_length=1,
        max_length=100,
        description="Stage that Tocsin sets for `write_back_status`.",
    )
    event_search: bool = Field(
        default=True, description="Search for events that involve an entity."
    )
    web_url: ServerUrl | None = Field(
        default=None,
        description="URL of a case in a browser, without the case ID, for links.",
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
