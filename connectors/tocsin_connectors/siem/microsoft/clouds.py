"""Microsoft's clouds, and where each of them has what is asked.

https://learn.microsoft.com/graph/deployments and
https://learn.microsoft.com/azure/azure-government/compare-azure-government-global-azure
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

CloudName = Literal["public", "usgov", "usdod", "china"]


@dataclass(frozen=True, slots=True)
class Cloud:
    """The addresses of one cloud; those of APIs also name the audience of their tokens."""

    authority: str
    """Where one signs in: Microsoft Entra ID."""
    management: str
    """Azure Resource Manager."""
    logs: str
    """The queries of Log Analytics."""
    graph: str
    """Microsoft Graph."""
    portal: str | None
    """The Defender portal, where there is one."""


_GOVERNMENT = Cloud(
    authority="https://login.microsoftonline.us",
    management="https://management.usgovcloudapi.net",
    logs="https://api.loganalytics.us",
    graph="https://graph.microsoft.us",
    portal="https://security.microsoft.us",
)

CLOUDS: Mapping[str, Cloud] = MappingProxyType(
    {
        "public": Cloud(
            authority="https://login.microsoftonline.com",
            management="https://management.azure.com",
            logs="https://api.loganalytics.io",
            graph="https://graph.microsoft.com",
            portal="https://security.microsoft.com",
        ),
        "usgov": _GOVERNMENT,
        "usdod": Cloud(
            authority=_GOVERNMENT.authority,
            management=_GOVERNMENT.management,
            logs=_GOVERNMENT.logs,
            graph="https://dod-graph.microsoft.us",
            portal="https://security.apps.mil",
        ),
        "china": Cloud(
            authority="https://login.chinacloudapi.cn",
            management="https://management.chinacloudapi.cn",
            logs="https://api.loganalytics.azure.cn",
            graph="https://microsoftgraph.chinacloudapi.cn",
            portal=None,
        ),
    }
)
