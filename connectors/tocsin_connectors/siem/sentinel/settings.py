"""What a provider that is a workspace of Sentinel can be told."""

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
    """Return tables whose names, and those of their columns, are ones that a query can hold."""
    names = [
        *tables,
        *(name for kinds in tables.values() for kind in kinds.values() for name in kind),
    ]
    if wrong := [name for name in names if not _NAME.fullmatch(name)]:
        raise ValueError(f"{wrong[0]!r:.80} is no name of a table or column")
    return tables


OwnTables = Annotated[dict[str, dict[EntityKind, tuple[str, ...]]], AfterValidator(_check_names)]


class SentinelSettings(EntraSettings, WindowedProvider.Settings):
    """The settings of `sentinel`."""

    addresses: ClassVar[Mapping[str, str]] = {
        **EntraSettings.addresses,
        "url": "management",
        "logs_url": "logs",
    }

    url: ServerUrl = Field(
        default=MICROSOFT_CLOUDS["public"].management,
        description="Azure Resource Manager: that of the cloud, unless it is given.",
    )
    logs_url: ServerUrl = Field(
        default=MICROSOFT_CLOUDS["public"].logs,
        description="The query API of Log Analytics: that of the cloud, unless it is given.",
    )
    subscription: str = Field(
        pattern=r"^[0-9A-Fa-f-]{36}$",
        description="The id (a GUID) of the workspace's subscription.",
    )
    resource_group: str = Field(
        pattern=r"^[\w.()-]{1,90}$", description="The name of the workspace's resource group."
    )
    workspace: str = Field(
        pattern=r"^[A-Za-z0-9-]{4,63}$",
        description="The name of the Log Analytics workspace, not its id.",
    )
    workspace_id: str | None = Field(
        default=None,
        pattern=r"^[0-9A-Fa-f-]{36}$",
        description="The id (a GUID) of that workspace, for queries; it is looked up unless it is "
        "given.",
    )
    api_version: str = Field(
        default="2025-09-01",
        pattern=r"^\d{4}-\d{2}-\d{2}(-preview)?$",
        description="The version of Sentinel's API, such as 2025-09-01.",
    )
    overlap: Duration = Field(
        default=timedelta(minutes=15),
        le=timedelta(days=7),
        description="How far each read goes back behind the last one: incidents of Defender XDR "
        "come up to ten minutes late.",
    )
    read_own: bool = Field(
        default=False,
        description="Also read the incidents that Tocsin itself has made in the workspace, as a "
        "destination `sentinel-incidents` does.",
    )
    tables: OwnTables = Field(
        default={},
        description="Tables of your own that investigations are to search: by the name of each, "
        "and by the kind of entity, which of its columns have that.",
    )
