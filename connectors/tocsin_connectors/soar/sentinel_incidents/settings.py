"""Settings of a `sentinel-incidents` destination."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, SecretStr, model_validator

from tocsin import CaseChannel, IncidentDisposition, ServerUrl
from tocsin_connectors.microsoft.clouds import MICROSOFT_CLOUDS, MicrosoftCloud, add_cloud_endpoints

_ENDPOINTS = {"url": "management", "authority": "authority"}
Classification = Literal[
    "Undetermined",
    "TruePositive-SuspiciousActivity",
    "BenignPositive-SuspiciousButExpected",
    "FalsePositive-IncorrectAlertLogic",
    "FalsePositive-InaccurateData",
]
"""Classification and reason of closed incidents."""


class SentinelIncidentsSettings(CaseChannel.Settings):
    """Settings of `sentinel-incidents`."""

    template: str = Field(
        default="sentinel-incidents",
        description="Receiver whose templates render the incident.",
    )
    cloud: Literal["public", "usgov", "china"] = Field(
        default="public", description="Microsoft cloud of the workspace."
    )
    url: ServerUrl = Field(
        default=MICROSOFT_CLOUDS["public"].management,
        description="Azure Resource Manager endpoint. Default: the cloud's endpoint.",
    )
    authority: ServerUrl = Field(
        default=MICROSOFT_CLOUDS["public"].authority,
        description="Sign-in endpoint. Default: the cloud's endpoint.",
    )
    tenant: str = Field(
        pattern=r"^[A-Za-z0-9.-]{1,253}$", description="Entra tenant, as an ID or domain."
    )
    client_id: str = Field(min_length=1, description="Client ID of the app registration.")
    client_secret: SecretStr = Field(description="Client secret of the app registration.")
    subscription: str = Field(
        pattern=r"^[0-9A-Fa-f-]{36}$", description="Subscription ID of the workspace."
    )
    resource_group: str = Field(
        pattern=r"^[\w.()-]{1,90}$", description="Resource group of the workspace."
    )
    workspace: str = Field(
        pattern=r"^[A-Za-z0-9-]{4,63}$",
        description="Name of the Log Analytics workspace, not its ID.",
    )
    closed_classification: Classification = Field(
        default="Undetermined",
        description="Classification and reason of incidents that Tocsin closes.",
    )
    close_as: Mapping[IncidentDisposition, Classification] = Field(
        default={},
        description="Classification and reason by the disposition of the incident, such as "
        '`{ "false-positive" = "FalsePositive-InaccurateData" }`; by default, '
        "`closed_classification`.",
    )

    @model_validator(mode="before")
    @classmethod
    def _add_cloud_endpoints(cls, given: Any) -> Any:
        return add_cloud_endpoints(given, _ENDPOINTS)

    @property
    def cloud_endpoints(self) -> MicrosoftCloud:
        """Endpoints of the cloud."""
        return MICROSOFT_CLOUDS[self.cloud]

    @property
    def tenant_id(self) -> str:
        """Tenant, under the name that `EntraClient` expects."""
        return self.tenant
