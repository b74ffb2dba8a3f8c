"""Settings of a Sentinel provider."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field

from tocsin import Duration, EntityKind, ServerUrl, WindowedProvider
from tocsin_connectors.microsoft.clouds import MICROSOFT_CLOUDS
from tocsin_connectors.microsoft.entra import EntraSettings

_NAME = re.compile(r"[A-Za-z_]\w{0,127}", re.ASCII)


def _check_names(
    tables: Mapping[str, Mapping[EntityKind, tuple[str, ...]]],
) -> Mapping[str, Mapping[EntityKind, tuple[str, ...]]]:
    """Return tables if their names and columns are valid in queries."""
    names = [
        *tables,
        *(name for kinds in tables.values() for kind in kinds.values() for name in kind),
    ]
    if wrong := [name for name in names if not _NAME.fullmatch(name)]:
        raise ValueError(f"{wrong[0]!r:.80} is not a valid table or column name")
    return tables


OwnTables = Annotated[dict[str, dict[EntityKind, tuple[str, ...]]], AfterValidator(_check_names)]


class SentinelSettings(EntraSettings, WindowedProvider.Settings):
    """Settings of `sentinel`."""

    addresses: ClassVar[Mapping[str, str]] = {
        **EntraSettings.addresses,
        "url": "management",
        "logs_url": "logs",
    }

    url: ServerUrl = Field(
        default=MICROSOFT_CLOUDS["public"].management,
        description="The Azure Resource Manager endpoint. Default: the cloud's endpoint.",
    )
    logs_url: ServerUrl = Field(
        default=MICROSOFT_CLOUDS["public"].logs,
        description="The Log Analytics query endpoint. Default: the cloud's endpoint.",
    )
    subscription: str = Field(
        pattern=r"^[0-9A-Fa-f-]{36}$",
        description="The ID (GUID) of the subscription that contains the workspace.",
    )
    resource_group: str = Field(
        pattern=r"^[\w.()-]{1,90}$", description="The resource group that contains the workspace."
    )
    workspace: str = Field(
        pattern=r"^[A-Za-z0-9-]{4,63}$",
        description="The name of the Log Analytics workspace, not its ID.",
    )
    workspace_id: str | None = Field(
        default=None,
        pattern=r"^[0-9A-Fa-f-]{36}$",
        description="The ID (GUID) of the workspace, for log queries. By default, Tocsin looks "
        "up the ID by the workspace's name.",
    )
    api_version: str = Field(
        default="2025-09-01",
        pattern=r"^\d{4}-\d{2}-\d{2}(-preview)?$",
        description="The version of the Sentinel API, such as 2025-09-01.",
    )
    overlap: Duration = Field(
        default=timedelta(minutes=15),
        le=timedelta(days=7),
        description="How much each read overlaps the previous one in time, because "
        "Defender XDR incidents can arrive up to ten minutes late.",
    )
    read_own: bool = Field(
        default=False,
        description="Whether to also read incidents that Tocsin itself created in the "
        "workspace, through a `sentinel-incidents` destination.",
    )
    tables: OwnTables = Field(
        default={},
        description="The custom tables in which Tocsin searches for events. For each table "
        "name, list the columns that contain entities, by entity kind.",
    )
