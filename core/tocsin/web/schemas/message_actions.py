"""Schemas of requests of chat platforms."""

from __future__ import annotations

from typing import ClassVar

from pydantic import ConfigDict, Field

from tocsin.model import Json
from tocsin.web.parsing import BodyModel


class MessageActionForm(BodyModel):
    """A request that a chat platform sends when a person presses a button."""

    model_config = ConfigDict(extra="allow")

    EXAMPLE: ClassVar[dict[str, Json]] = {"payload": '{"type": "block_actions"}'}

    payload: str = Field(description="The pressed button, as JSON in the platform's format.")
