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

    project: str = Field(pattern=_Part, description="Google Cloud project, by ID or number.")
    region: str = Field(
        pattern=r"^[a-z0-9-]{1,50}$",
        description="Region of the instance, in lowercase: us, eu, europe-west2, ...",
    )
    instance: str = Field(pattern=_Part, description="Customer ID (GUID) of the instance.")
    service_account: SecretStr = Field(description="Service account key, as JSON.")
    url: ServerUrl = Field(
        default="https://us-chronicle.googleapis.com",
        description="API endpoint. Default: the region's endpoint.",
    )
    sign_in_url: ServerUrl = Field(
        default="https://oauth2.googleapis.com", description="Sign-in endpoint."
    )
    detections: Literal["alerting", "all"] = Field(
        default="alerting",
        description="Detections to read: alerting (detections of rules that alert) or all.",
    )
    regional_endpoint: bool = Field(
        default=False, description="Use the endpoint chronicle.<region>.rep.googleapis.com."
    )
    curated_detections: bool = Field(
        default=True, description="Also read the detections of Google's curated rules."
    )
    curated_rules: tuple[RuleName, ...] = Field(
        default=(),
        max_length=50,
        description="IDs of the curated rules to read, instead of all; each starts with ur_.",
    )
    lists_per_minute: int = Field(
        default=10,
        ge=1,
        le=600,
        description="Maximum number of requests for detections per minute.",
    )
    changes_every: ChangesInterval = timedelta(hours=1)
    settle_delay: SettleDelay = timedelta(minutes=2)
    overlap: Duration = Field(
        default=timedelta(hours=1),
        le=timedelta(days=7),
        description="Overlap of two consecutive windows, to find detections that appear late.",
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
