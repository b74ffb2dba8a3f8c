"""What a provider that is an instance of Google SecOps can be told."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import Field, SecretStr, StringConstraints, model_validator

from tocsin import ApiSettings, Duration, ServerUrl, WindowedProvider

RuleName = Annotated[str, StringConstraints(pattern=r"^ur_[A-Za-z0-9_-]{1,100}$")]
_Part = r"^[A-Za-z0-9:._-]{1,100}$"


class SecOpsSettings(WindowedProvider.Settings, ApiSettings):
    """The settings of `secops`."""

    project: str = Field(pattern=_Part, description="The Google Cloud project: its id or number.")
    region: str = Field(
        pattern=r"^[a-z0-9-]{1,50}$",
        description="Where the instance is, in small letters: us, eu, europe-west2, ...",
    )
    instance: str = Field(pattern=_Part, description="The customer id (GUID) of the instance.")
    service_account: SecretStr = Field(description="The key of a service account, as JSON.")
    url: ServerUrl = Field(
        default="https://us-chronicle.googleapis.com",
        description="The API: that of the region, unless it is given.",
    )
    sign_in_url: ServerUrl = Field(
        default="https://oauth2.googleapis.com", description="Where to sign in."
    )
    detections: Literal["alerting", "all"] = Field(
        default="alerting", description="Which detections to read: those of alerting rules, or all."
    )
    curated_rules: tuple[RuleName, ...] = Field(
        default=(),
        max_length=50,
        description="The ids of curated rules whose detections are read as well; each begins with "
        "ur_.",
    )
    lists_per_minute: int = Field(
        default=10, ge=1, le=600, description="How many pages of detections to ask for a minute."
    )
    changes_every: Duration = Field(
        default=timedelta(hours=1),
        ge=timedelta(seconds=1),
        description="How often to look for what became of detections.",
    )
    changes_for: Duration = Field(
        default=timedelta(days=7),
        gt=timedelta(0),
        description="How old a detection may be for that.",
    )
    overlap: Duration = Field(
        default=timedelta(hours=1),
        le=timedelta(days=7),
        description="How far each read goes back behind the last one, for what is shown late.",
    )
    settle_delay: Duration = Field(
        default=timedelta(minutes=2),
        le=timedelta(days=1),
        description="How old a detection must be to be read, for SecOps to have it complete.",
    )
    reread_after: tuple[Duration, ...] = Field(
        default=(),
        max_length=10,
        description="How long after a detection was new to read it again; changes are read anyway.",
    )

    @model_validator(mode="before")
    @classmethod
    def _of_the_region(cls, given: Any) -> Any:
        match given:
            case {"region": str(region)}:
                return {"url": f"https://{region}-chronicle.googleapis.com"} | given
        return given  # what is wrong with it is said of the field
