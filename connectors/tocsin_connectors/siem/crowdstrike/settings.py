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
    """The addresses of one cloud."""

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


RepositoryName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{0,100}$")]


class CrowdStrikeSettings(WindowedProvider.Settings, ApiSettings):
    """The settings of `crowdstrike`."""

    cloud: FalconCloudName = Field(
        default="us-1", description="Which of CrowdStrike's clouds it is: us-1, us-2, eu-1, ..."
    )
    url: ServerUrl = Field(
        default=FALCON_CLOUDS["us-1"].api,
        description="The API: that of the cloud, unless it is given.",
    )
    client_id: str = Field(min_length=1, description="The id of an API client.")
    client_secret: SecretStr = Field(description="The secret of that API client.")
    member_cid: str | None = Field(
        default=None,
        pattern=r"^[0-9A-Fa-f]{32}(-[0-9A-Fa-f]{2})?$",
        description="Of a parent in Flight Control: the child to read, by its CID of 32 digits.",
    )
    event_repository: RepositoryName = Field(
        default="search-all",
        description='The view of Next-Gen SIEM to look into for what an entity did; "" for none.',
    )

    @model_validator(mode="before")
    @classmethod
    def _of_the_cloud(cls, given: Any) -> Any:
        match given:
            case {"cloud": str(name)} if name in FALCON_CLOUDS:
                return {"url": FALCON_CLOUDS[name].api} | given
        return given  # what is wrong with it is said of the field
