"""Settings of a CrowdStrike provider, and CrowdStrike's clouds.

A customer is in one cloud and unknown to the others:
https://www.falconpy.io/Usage/Environment-Configuration.html
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import Field, SecretStr, StringConstraints, model_validator

from tocsin import ApiSettings, ServerUrl, WindowedProvider

FalconCloudName = Literal["us-1", "us-2", "eu-1", "us-gov-1", "us-gov-2"]


@dataclass(frozen=True, slots=True)
class FalconCloud:
    """Endpoints of one cloud."""

    api: str
    console: str


FALCON_CLOUDS: Mapping[str, FalconCloud] = MappingProxyType(
    {
        "us-1": FalconCloud("https://api.crowdstrike.com", "https://falcon.crowdstrike.com"),
        "us-2": FalconCloud(
            "https://api.us-2.crowdstrike.com", "https://falcon.us-2.crowdstrike.com"
        ),
        "eu-1": FalconCloud(
            "https://api.eu-1.crowdstrike.com", "https://falcon.eu-1.crowdstrike.com"
        ),
        "us-gov-1": FalconCloud(
            "https://api.laggar.gcw.crowdstrike.com", "https://falcon.laggar.gcw.crowdstrike.com"
        ),
        "us-gov-2": FalconCloud(
            "https://api.us-gov-2.crowdstrike.mil", "https://falcon.us-gov-2.crowdstrike.mil"
        ),
    }
)


AlertWord = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=100)]
RepositoryName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{0,100}$")]


class CrowdStrikeSettings(WindowedProvider.Settings, ApiSettings):
    """Settings of `crowdstrike`."""

    cloud: FalconCloudName = Field(
        default="us-1",
        description="The customer's CrowdStrike cloud: us-1, us-2, eu-1, us-gov-1 or us-gov-2.",
    )
    url: ServerUrl = Field(
        default=FALCON_CLOUDS["us-1"].api,
        description="The API endpoint. Default: the cloud's endpoint.",
    )
    client_id: str = Field(min_length=1, description="The ID of the API client that Tocsin uses.")
    client_secret: SecretStr = Field(description="The API client's secret.")
    member_cid: str | None = Field(
        default=None,
        pattern=r"^[0-9A-Fa-f]{32}(-[0-9A-Fa-f]{2})?$",
        description="If the API client belongs to a Flight Control parent: the CID (32 hexadecimal "
        "digits) of the child tenant whose alerts Tocsin reads.",
    )
    excluded_products: tuple[AlertWord, ...] = Field(
        default=("automated-lead", "automated-lead-context"),
        description="The products whose alerts Tocsin does not read. By default, Tocsin does "
        "not read automated leads, which summarize signals from other alerts.",
    )
    excluded_types: tuple[AlertWord, ...] = Field(
        default=(), description="The alert types that Tocsin does not read, such as ofp or signal."
    )
    hidden_alerts: bool = Field(
        default=False,
        description="Whether to also read new alerts that are hidden in the Falcon console.",
    )
    event_repository: RepositoryName = Field(
        default="search-all",
        description="The Next-Gen SIEM repository or view in which Tocsin searches for events. "
        'To disable event searches, set "".',
    )

    @model_validator(mode="before")
    @classmethod
    def _add_cloud_endpoints(cls, given: Any) -> Any:
        match given:
            case {"cloud": str(name)} if name in FALCON_CLOUDS:
                return {"url": FALCON_CLOUDS[name].api} | given
        return given  # the error is reported for the field
