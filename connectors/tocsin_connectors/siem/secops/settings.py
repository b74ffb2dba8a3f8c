"""Settings of a SecOps provider."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import Field, SecretStr, StringConstraints, model_validator

from tocsin import ApiSettings, Duration, ServerUrl
from tocsin_connectors.siem.lookback import ChangesInterval, LookbackProvider, SettleDelay

RuleName = Annotated[str, StringConstraints(pattern=r"^ur_[A-Za-z0-9_-]{1,100}$")]
_Part = r"^[A-Za-z0-9:._-]{1,100}$"


class SecOpsSettings(LookbackProvider.Settings, ApiSettings):
    """Settings of `secops`."""

    project: str = Field(pattern=_Part, description="The ID or number of the Google Cloud project.")
    region: str = Field(
        pattern=r"^[a-z0-9-]{1,50}$",
        description="The instance's region in lowercase, such as us, eu or europe-west2.",
    )
    instance: str = Field(pattern=_Part, description="The customer ID (GUID) of the instance.")
    service_account: SecretStr = Field(description="The service account key, in JSON format.")
    url: ServerUrl = Field(
        default="https://us-chronicle.googleapis.com",
        description="The API endpoint. Default: the region's endpoint.",
    )
    sign_in_url: ServerUrl = Field(
        default="https://oauth2.googleapis.com", description="The sign-in endpoint."
    )
    detections: Literal["alerting", "all"] = Field(
        default="alerting",
        description="Which detections Tocsin reads: alerting (only detections of alerting "
        "rules) or all.",
    )
    regional_endpoint: bool = Field(
        default=False,
        description="Whether to use the endpoint chronicle.<region>.rep.googleapis.com.",
    )
    curated_detections: bool = Field(
        default=True, description="Whether to also read the detections of Google's curated rules."
    )
    curated_rules: tuple[RuleName, ...] = Field(
        default=(),
        max_length=50,
        description="The IDs of the curated rules whose detections Tocsin reads, instead of "
        "those of all curated rules. Each ID starts with ur_.",
    )
    lists_per_minute: int = Field(
        default=10,
        ge=1,
        le=600,
        description="The maximum number of requests for detections that Tocsin sends per minute.",
    )
    changes_every: ChangesInterval = timedelta(hours=1)
    settle_delay: SettleDelay = timedelta(minutes=2)
    overlap: Duration = Field(
        default=timedelta(hours=1),
        le=timedelta(days=7),
        description="How much each read overlaps the previous one in time, to find "
        "detections that appear late.",
    )

    @model_validator(mode="before")
    @classmethod
    def _add_region_endpoint(cls, given: Any) -> Any:
        match given:
            case {"region": str(region), "regional_endpoint": True}:
                return {"url": f"https://chronicle.{region}.rep.googleapis.com"} | given
            case {"region": str(region)}:
                return {"url": f"https://{region}-chronicle.googleapis.com"} | given
        return given  # the error is reported for the field
