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
"""Classification and reason that closed incidents get."""


class SentinelIncidentsSettings(CaseChannel.Settings):
    """Settings of `sentinel-incidents`."""

    template: str = Field(
        default="sentinel-incidents",
        description="Receiver whose templates render the incident.",
    )
    cloud: Literal["public", "usgov", "china"] = Field(
        default="public", description="Microsoft cloud that contains the workspace."
    )
    url: ServerUrl = Field(
        default=MICROSOFT_CLOUDS["public"].management,
        description="URL of Azure Resource Manager. By default, this depends on `cloud`.",
    )
    authority: ServerUrl = Field(
        default=MICROSOFT_CLOUDS["public"].authority,
        description="URL of the sign-in endpoint. By default, this depends on `cloud`.",
    )
    tenant: str = Field(
        pattern=r"^[A-Za-z0-9.-]{1,253}$", description="Entra tenant, by ID or domain."
    )
    client_id: str = Field(min_length=1, description="Client ID of the app registration.")
    client_secret: SecretStr = Field(description="Client secret of the app registration.")
    subscription: str = Field(
        pattern=r"^[0-9A-Fa-f-]{36}$", description="ID of the workspace's subscription."
    )
    resource_group: str = Field(
        pattern=r"^[\w.()-]{1,90}$", description="Resource group that contains the workspace."
    )
    workspace: str = Field(
        pattern=r"^[A-Za-z0-9-]{4,63}$",
        description="Name of the Log Analytics workspace, not its ID.",
    )
    closed_classification: Classification = Field(
        default="Undetermined",
        description="Classification and reason that a Sentinel incident gets when Tocsin closes "
        "it.",
    )
    close_as: Mapping[IncidentDisposition, Classification] = Field(
        default={},
        description="Overrides `closed_classification` for incidents with certain dispositions, "
        "for example "
        '`{ "false-positive" = "FalsePositive-InaccurateData" }`.',
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
