"""CrowdStrike's clouds: a customer is in one of them, and unknown to the others.

https://www.falconpy.io/Usage/Environment-Configuration.html
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

CloudName = Literal["us-1", "us-2", "eu-1", "us-gov-1", "us-gov-2"]


@dataclass(frozen=True, slots=True)
class Cloud:
    """The addresses of one cloud."""

    api: str
    console: str


CLOUDS: Mapping[str, Cloud] = MappingProxyType(
    {
        "us-1": Cloud("https://api.crowdstrike.com", "https://falcon.crowdstrike.com"),
        "us-2": Cloud("https://api.us-2.crowdstrike.com", "https://falcon.us-2.crowdstrike.com"),
        "eu-1": Cloud("https://api.eu-1.crowdstrike.com", "https://falcon.eu-1.crowdstrike.com"),
        "us-gov-1": Cloud(
            "https://api.laggar.gcw.crowdstrike.com", "https://falcon.laggar.gcw.crowdstrike.com"
        ),
        "us-gov-2": Cloud(
            "https://api.us-gov-2.crowdstrike.mil", "https://falcon.us-gov-2.crowdstrike.mil"
        ),
    }
)
