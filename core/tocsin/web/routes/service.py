"""How the service itself is doing."""

from __future__ import annotations

import asyncio
from typing import Literal

import structlog
from pydantic import Field

from tocsin.errors import OperatorError
from tocsin.store import Database, check_schema
from tocsin.web.context import RequestContext, Response
from tocsin.web.parsing import ResponseModel

_DATABASE_TIMEOUT = 5

_log = structlog.get_logger()


class Liveness(ResponseModel):
    """The process answers."""

    status: Literal["ok"]


class Readiness(ResponseModel):
    """Whether this node can do its work; never a provider's or destination's state."""

    status: Literal["ready", "not ready"]
    database: bool = Field(description="It is reachable, and its schema is this version's.")
    roles: dict[str, bool] = Field(description="The node's roles, and whether each was started.")
    differing: list[str] = Field(
        description="Destinations and schedules that this node's plugins.toml has otherwise than "
        "what was applied, and what `tocsin apply` would do. The node works by what was applied."
    )


async def get_health(_call: RequestContext) -> Response:
    """Answer that the process is alive."""
    return Response({"status": "ok"})


async def get_readiness(call: RequestContext) -> Response:
    """Answer whether the node is ready, 503 where it is not."""
    database = await _is_current(call.services.database)
    roles = dict(call.services.roles())
    ready = database and all(roles.values())
    content = {
        "status": "ready" if ready else "not ready",
        "database": database,
        "roles": roles,
        "differing": list(call.services.differing()),
    }
    return Response(content, status=200 if ready else 503)


async def _is_current(database: Database) -> bool:
    try:
        async with asyncio.timeout(_DATABASE_TIMEOUT):
            await check_schema(database)
    except (OperatorError, TimeoutError) as error:
        # The reason may name hosts, and anyone may ask
        _log.warning("not ready", reason=str(error) or "the database does not answer")
        return False
    return True
