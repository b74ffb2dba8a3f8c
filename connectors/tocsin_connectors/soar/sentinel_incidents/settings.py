"""What a destination that is a workspace of Sentinel can be told."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, SecretStr, model_validator

from tocsin import CaseChannel, ServerUrl
from tocsin_connectors.microsoft.clouds import MICROSOFT_CLOUDS, MicrosoftCloud, add_cloud_endpoints

_ENDPOINTS = {"url": "management", "authority": "authority"}


class SentinelIncidentsSettings(CaseChannel.Settings):
    """The settings of `sentinel-incidents`."""

    template: str = Field(
        default="sentinel-incidents",
        description="The receiver whose templates render the incident.",
    )
    cloud: Literal["public", "usgov", "china"] = Field(
        default="public", description="Which of Microsoft's clouds the workspace is in."
    )
    url: ServerUrl = Field(
        default=MICROSOFT_CLOUDS["public"].management,
        description="Azure Resource Manager: that of the cloud, unless it is given.",
    )
    authority: ServerUrl = Field(
        default=MICROSOFT_CLOUDS["public"].authority,
        description="Where to sign in: that of the cloud, unless it is given.",
    )
    tenant: str = Field(
        pattern=r"^[A-Za-z0-9.-]{1,253}$", description="The Entra tenant: its id, or a domain."
    )
    client_id: str = Field(min_length=1, description="The id of the registered app.")
    client_secret: SecretStr = Field(description="A secret of that app.")
    subscription: str = Field(
        pattern=r"^[0-9A-Fa-f-]{36}$", description="The id of the workspace's subscription."
    )
    resource_group: str = Field(
        pattern=r"^[\w.()-]{1,90}$", description="The name of the workspace's resource group."
    )
    workspace: str = Field(
        pattern=r"^[A-Za-z0-9-]{4,63}$",
        description="The name of the Log Analytics workspace, not its id.",
    )
    closed_classification: Literal[
        "Undetermined",
        "TruePositive-SuspiciousActivity",
        "BenignPositive-SuspiciousButExpected",
        "FalsePositive-IncorrectAlertLogic",
        "FalsePositive-InaccurateData",
    ] = Field(
        default="Undetermined",
        description="The classification of an incident that Tocsin closes, and its reason.",
    )

    @model_validator(mode="before")
    @classmethod
    def _of_the_cloud(cls, given: Any) -> Any:
        return add_cloud_endpoints(given, _ENDPOINTS)

    @property
    def cloud_endpoints(self) -> MicrosoftCloud:
        """The addresses of the cloud."""
        return MICROSOFT_CLOUDS[self.cloud]

    @property
    def tenant_id(self) -> str:
        """The tenant, as `EntraClient` asks for it."""
        return self.tenant
