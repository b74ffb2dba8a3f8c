"""Schemas of push."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import ConfigDict, Field

from tocsin.model import Json
from tocsin.web.parsing import BodyModel, ResponseModel
from tocsin.web.schemas.examples import CREATED, PROVIDER


def _object_or_array(schema: dict[str, Any]) -> None:
    """Describe a body that is an object or a list of anything, as the provider's format says."""
    del schema["type"], schema["properties"]
    schema["anyOf"] = [{"type": "object"}, {"type": "array", "items": {}}]


class PushBody(BodyModel):
    """What is pushed, in the shape that the provider's settings name."""

    model_config = ConfigDict(extra="allow", json_schema_extra=_object_or_array)

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "external_id": "case-17",
        "title": "Many failed sign-ins, then one that succeeded",
        "severity": "High",
        "occurred_at": CREATED,
        "entities": [{"kind": "ip", "value": "203.0.113.7"}],
    }


class PushResult(ResponseModel):
    """What a push came to, once all of it is stored."""

    EXAMPLE: ClassVar[dict[str, Json]] = {"provider": PROVIDER, "changed": 0, "rejected": 0}

    provider: str
    received: int = Field(description="How many incidents were sent.")
    new: int = Field(description="How many of them were not known yet.")
    changed: int = Field(description="How many differ from what was known of them.")
    rejected: int = Field(
        description="How many could not be understood, or are said to be missing; they are kept "
        "aside with the reason."
    )
