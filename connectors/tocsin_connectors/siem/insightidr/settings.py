"""Settings of an InsightIDR provider, and Rapid7's regions.

An organization is in one region: https://docs.rapid7.com/insight/product-apis/#supported-regions
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Literal, get_args

from pydantic import Field, SecretStr, model_validator

from tocsin import ApiSettings, Duration, ServerUrl, WindowedProvider

RegionCode = Literal["us", "us2", "us3", "eu", "ca", "au", "ap"]


class InsightIDRSettings(WindowedProvider.Settings, ApiSettings):
    """Settings of `insightidr`."""

    region: RegionCode = Field(
        default="us", description="Region of the organization: us, us2, us3, eu, ca, au or ap."
    )
    url: ServerUrl = Field(
        default="https://us.api.insight.rapid7.com",
        description="API endpoint. Default: that of the region.",
    )
    api_key: SecretStr = Field(description="API key of a user or of the organization.")
    web_url: ServerUrl | None = Field(
        default=None,
        description="URL of InsightIDR in a browser, as far as /op/ and its token, for links. "
        "Default: from alerts.",
    )
    alert_details: bool = Field(
        default=True, description="Read details and evidence of alerts, which have the entities."
    )
    changes_every: Duration = Field(
        default=timedelta(minutes=15),
        ge=timedelta(seconds=1),
        description="Interval between checks for changed investigations.",
    )
    changes_for: Duration = Field(
        default=timedelta(days=7),
        gt=timedelta(0),
        le=timedelta(days=390),
        description="Age up to which investigations are checked for changes.",
    )
    settle_delay: Duration = Field(
        default=timedelta(minutes=1),
        le=timedelta(days=1),
        description="Minimum age of an investigation, so that the search finds it.",
    )

    @model_validator(mode="before")
    @classmethod
    def _add_region_endpoint(cls, given: Any) -> Any:
        match given:
            case {"region": str(region)} if region in get_args(RegionCode):
                return {"url": f"https://{region}.api.insight.rapid7.com"} | given
        return given  # the error is reported for the field
