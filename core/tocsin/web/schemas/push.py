"""Schemas of pushes."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

from pydantic import ConfigDict, Field

from tocsin.model import Json
from tocsin.web.parsing import BodyModel, ResponseModel
from tocsin.web.schemas.examples import CREATED, PROVIDER


def _object_or_array(schema: dict[str, Any]) -> None:
    """Describe a body that is an object or a list, depending on the provider's format."""
    del schema["type"], schema["properties"]
    schema["anyOf"] = [{"type": "object"}, {"type": "array", "items": {}}]


class PushBody(BodyModel):
    """Pushed incidents, in the format that the provider's settings specify."""

    model_config = ConfigDict(extra="allow", json_schema_extra=_object_or_array)

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "external_id": "case-17",
        "title": "Many failed sign-ins, then one that succeeded",
        "severity": "High",
        "occurred_at": CREATED,
        "entities": [{"kind": "ip", "value": "203.0.113.7"}],
    }


class PushSummary(ResponseModel):
    """Result of a push, after Tocsin has stored all incidents or the intake has accepted them."""

    EXAMPLE: ClassVar[dict[str, Json]] = {"provider": PROVIDER, "changed": 0, "rejected": 0}

    provider: str
    received: int = Field(description="Number of incidents in the push.")
    new: int | None = Field(
        description="Number of new incidents; null in a 202 response, because they are not "
        "stored yet."
    )
    changed: int | None = Field(description="Number of changed incidents; null in a 202 response.")
    rejected: int = Field(
        description="Number of incidents that could not be parsed or that the sender omitted. "
        "Tocsin quarantines them with the reason."
    )


class WaitingPushes(ResponseModel):
    """A provider's pushes that the intake has accepted but that are not stored yet."""

    EXAMPLE: ClassVar[dict[str, Json]] = {"provider": PROVIDER, "stored": 4711, "accepted": 4713}

    provider: str
    stored: int = Field(description="Number of the last stored push in the intake.")
    accepted: int = Field(description="Number of the last accepted push in the intake.")
    since: datetime = Field(description="When the oldest waiting push arrived.")
