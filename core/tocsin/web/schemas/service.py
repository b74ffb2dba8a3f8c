"""Schemas of liveness and readiness."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from tocsin.model import Json
from tocsin.store import DatabaseFault
from tocsin.web.parsing import ResponseModel


class Liveness(ResponseModel):
    """The process is alive."""

    status: Literal["ok"]


class Readiness(ResponseModel):
    """Whether this node can store and deliver, regardless of providers and destinations."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "database": True,
        "fault": None,
        "roles": {
            "api": True,
            "sync": True,
            "investigate": True,
            "schedule": True,
            "deliver": True,
        },
    }

    status: Literal["ready", "not ready"]
    database: bool = Field(
        description="Whether a write was committed in time, to the database that the node started "
        "with, in the schema of this version."
    )
    fault: str | None = Field(
        description="Why the database takes no writes; null if it does.",
        json_schema_extra={"enum": [*(fault.value for fault in DatabaseFault), None]},
    )
    roles: dict[str, bool] = Field(description="Roles of the node, and whether each is running.")
    stalled: list[str] = Field(
        description="Background loops that have completed no step for longer than they may."
    )
    suspended: str | None = Field(
        description="Why the node does not work, such as a clock that is far off; null if it works."
    )
    differing: list[str] = Field(
        description="Destinations and schedules in which this node's plugins.toml differs from "
        "what was applied, with the effect of `tocsin apply`. The node uses what was applied."
    )
