"""Settings of an InsightIDR provider, and Rapid7's regions.

An organization is in one region: https://docs.rapid7.com/insight/product-apis/#supported-regions
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Literal, get_args

from pydantic import Field, SecretStr, model_validator

from tocsin import ApiSettings, ServerUrl
from tocsin_connectors.siem.lookback import LookbackProvider, RefreshAges

RegionCode = Literal["us", "us2", "us3", "eu", "ca", "au", "ap"]


class InsightIDRSettings(LookbackProvider.Settings, ApiSettings):
    """Settings of `insightidr`."""

    region: RegionCode = Field(
        default="us", description="The organization's region: us, us2, us3, eu, ca, au or ap."
    )
    url: ServerUrl = Field(
        default="https://us.api.insight.rapid7.com",
        description="The API endpoint. Default: the region's endpoint.",
    )
    api_key: SecretStr = Field(description="A user key or an organization key.")
    web_url: ServerUrl | None = Field(
        default=None,
        description="The URL of InsightIDR in your browser, up to and including /op/ and the "
        "token after it. Tocsin uses this URL for links. Default: the URL from an alert.",
    )
    alert_details: bool = Field(
        default=True,
        description="Whether to request the details and evidence of each alert, which contain "
        "the entities and techniques.",
    )
    refresh_after: RefreshAges = (
        timedelta(minutes=2),
        timedelta(minutes=10),
        timedelta(minutes=30),
    )

    @model_validator(mode="before")
    @classmethod
    def _add_region_endpoint(cls, given: Any) -> Any:
        match given:
            case {"region": str(region)} if region in get_args(RegionCode):
                return {"url": f"https://{region}.api.insight.rapid7.com"} | given
        return given  # the error is reported for the field
