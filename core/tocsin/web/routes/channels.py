"""Kinds of channel: what destinations can be made of."""

from __future__ import annotations

from typing import Any

from pydantic import Field
from sqlalchemy import Connection

from tocsin.delivery import ChannelOffer
from tocsin.registry.settings_schema import SettingShape
from tocsin.web.context import RequestContext, Response
from tocsin.web.parsing import ResponseModel


class ChannelSetting(ResponseModel):
    """What a destination of this kind can be told."""

    name: str
    type: str = Field(description="What `plugins.toml` takes, in words.")
    shape: SettingShape = Field(
        description="What a form would ask for; `table` is texts by their names, `anything` what "
        "JSON can hold."
    )
    choices: list[str] = Field(description="For `choice` and `choices`: of these.")
    required: bool
    default: str | None = Field(description="As `plugins.toml` would have it.")
    secret: bool = Field(description="Whether it is kept encrypted, and never answered.")
    local: bool = Field(description="Whether only `plugins.toml` can set it.")
    common: bool = Field(description="Whether every destination can be told it.")
    description: str


class ChannelItem(ResponseModel):
    """A kind of channel, by the plugin that offers it."""

    plugin: str
    summary: str
    settings: list[ChannelSetting] = Field(description="Its own before the common ones.")


class ChannelList(ResponseModel):
    """Every kind of channel that is enabled."""

    channels: list[ChannelItem]
    total: int


def list_channels(_connection: Connection, call: RequestContext) -> Response:
    """Answer the kinds of channel that this node has, by name, and what each can be told."""
    offers = call.services.registrar.offered()
    return Response({"channels": [_represent(offer) for offer in offers], "total": len(offers)})


def _represent(offer: ChannelOffer) -> dict[str, Any]:
    settings = [
        {
            "name": it.setting.name,
            "type": it.setting.type,
            "shape": it.shaped.shape,
            "choices": list(it.shaped.choices),
            "required": it.setting.required,
            "default": it.setting.default,
            "secret": it.setting.secret,
            "local": it.local,
            "common": it.setting.common,
            "description": it.setting.description,
        }
        for it in offer.settings
    ]
    return {"plugin": offer.plugin, "summary": offer.summary, "settings": settings}
