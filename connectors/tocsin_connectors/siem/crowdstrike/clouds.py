"""CrowdStrike's clouds: a customer is in one of them, and unknown to the others.

https://www.falconpy.io/Usage/Environment-Configuration.html
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

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
