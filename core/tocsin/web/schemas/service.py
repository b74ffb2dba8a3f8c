"""Schemas of service."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from tocsin.model import Json
from tocsin.web.parsing import ResponseModel


class Liveness(ResponseModel):
    """The process answers."""

    status: Literal["ok"]


class Readiness(ResponseModel):
    """Whether this node can do its work; never a provider's or destination's state."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "database": True,
        "roles": {
            "api": True,
            "sync": True,
            "investigate": True,
            "schedule": True,
            "deliver": True,
        },
    }

    status: Literal["ready", "not ready"]
    database: bool = Field(description="It is reachable, and its schema is this version's.")
    roles: dict[str, bool] = Field(description="The node's roles, and whether each was started.")
    differing: list[str] = Field(
        description="Destinations and schedules that this node's plugins.toml has otherwise than "
        "what was applied, and what `tocsin apply` would do. The node works by what was applied."
    )
