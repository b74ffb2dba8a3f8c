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


class ReloadSummary(ResponseModel):
    """Changes in the files of this node."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "changed": ["destinations.soar", "providers.edge"],
        "restart_required": [],
        "differing": [],
    }

    changed: list[str] = Field(
        description="Settings, `templates`, and tables of plugins.toml that changed and are now "
        "in effect."
    )
    restart_required: list[str] = Field(
        description="Settings, and `retention` and `intake` of plugins.toml, that changed and take "
        "effect after a restart."
    )
    differing: list[str] = Field(
        description="Changes to destinations and schedules that `tocsin apply` would make."
    )


class Readiness(ResponseModel):
    """This node's readiness, regardless of the health of providers and destinations."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "intake": None,
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
    intake: bool | None = Field(
        description="Whether the intake accepts pushes; null if no intake is configured. If the "
        "intake accepts pushes, the node is ready even if the database does not "
        "accept writes."
    )
    database: bool = Field(
        description="Whether a test write was committed within five seconds. The database must "
        "be the one with which the node started, and must have this version's schema."
    )
    fault: str | None = Field(
        description="Why the database does not accept writes; null if it does.",
        json_schema_extra={"enum": [*(fault.value for fault in DatabaseFault), None]},
    )
    roles: dict[str, bool] = Field(description="The node's roles, and whether each is running.")
    stalled: list[str] = Field(
        description="Background loops that have not completed a step within their time limit."
    )
    suspended: str | None = Field(
        description="Why the node is suspended, such as a clock offset; null if it is not."
    )
    routing_on_hold: str | None = Field(
        description="Why Tocsin is not routing events, and how to fix it; null if it is routing "
        "them."
    )
    differing: list[str] = Field(
        description="Changes to destinations and schedules that `tocsin apply` would make. Until "
        "you run it, the node uses the applied configuration."
    )
