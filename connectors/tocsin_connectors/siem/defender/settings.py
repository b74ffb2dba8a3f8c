"""Settings of a Defender provider."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from tocsin import ServerUrl, WindowedProvider
from tocsin_connectors.microsoft.clouds import MICROSOFT_CLOUDS
from tocsin_connectors.microsoft.entra import EntraSettings


class DefenderSettings(EntraSettings, WindowedProvider.Settings):
    """Settings of `defender`."""

    addresses: ClassVar[Mapping[str, str]] = {**EntraSettings.addresses, "url": "graph"}

    url: ServerUrl = Field(
        default=MICROSOFT_CLOUDS["public"].graph,
        description="Microsoft Graph endpoint. Default: the one of the cloud.",
    )
