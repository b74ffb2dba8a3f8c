"""Microsoft clouds and their endpoints.

https://learn.microsoft.com/graph/deployments and
https://learn.microsoft.com/azure/azure-government/compare-azure-government-global-azure
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

MicrosoftCloudName = Literal["public", "usgov", "usdod", "china"]


@dataclass(frozen=True, slots=True)
class MicrosoftCloud:
    """Endpoints of one cloud. The endpoint of an API is also the audience of its tokens."""

    authority: str
    """Microsoft Entra ID, for sign-in."""
    management: str
    """Azure Resource Manager."""
    logs: str
    """Log Analytics queries."""
    graph: str
    """Microsoft Graph."""
    portal: str | None
    """Defender portal, if the cloud has one."""
    azure_portal: str


_GOVERNMENT = MicrosoftCloud(
    authority="https://login.microsoftonline.us",
    management="https://management.usgovcloudapi.net",
    logs="https://api.loganalytics.us",
    graph="https://graph.microsoft.us",
    portal="https://security.microsoft.us",
    azure_portal="https://portal.azure.us",
)

MICROSOFT_CLOUDS: Mapping[str, MicrosoftCloud] = MappingProxyType(
    {
        "public": MicrosoftCloud(
            authority="https://login.microsoftonline.com",
            management="https://management.azure.com",
            logs="https://api.loganalytics.io",
            graph="https://graph.microsoft.com",
            portal="https://security.microsoft.com",
            azure_portal="https://portal.azure.com",
        ),
        "usgov": _GOVERNMENT,
        "usdod": MicrosoftCloud(
            authority=_GOVERNMENT.authority,
            management=_GOVERNMENT.management,
            logs=_GOVERNMENT.logs,
            graph="https://dod-graph.microsoft.us",
            portal="https://security.apps.mil",
            azure_portal=_GOVERNMENT.azure_portal,
        ),
        "china": MicrosoftCloud(
            authority="https://login.chinacloudapi.cn",
            management="https://management.chinacloudapi.cn",
            logs="https://api.loganalytics.azure.cn",
            graph="https://microsoftgraph.chinacloudapi.cn",
            portal=None,
            azure_portal="https://portal.azure.cn",
        ),
    }
)


def add_cloud_endpoints(given: Any, addresses: Mapping[str, str]) -> Any:
    """Add the endpoints of the cloud to settings that do not set them.

    `addresses` maps settings to attributes of `MicrosoftCloud`. Settings with an unknown cloud are
    returned unchanged: the error is reported for that field.
    """
    match given:
        case {"cloud": str(name)}:
            cloud = MICROSOFT_CLOUDS.get(name)
        case _:
            cloud = MICROSOFT_CLOUDS["public"]
    if cloud is None or not isinstance(given, dict):
        return given
    return {name: getattr(cloud, part) for name, part in addresses.items()} | given
