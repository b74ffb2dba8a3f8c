"""Endpoints for liveness, readiness and metrics of the service."""

from __future__ import annotations

import hmac
from ipaddress import ip_address

from aiohttp import hdrs, web
from sqlalchemy import Connection

from tocsin.errors import OperatorError
from tocsin.hookspecs import NoIntake
from tocsin.metrics import MEDIA_TYPE
from tocsin.model import Json
from tocsin.web.client_addresses import FORWARDED, UNKNOWN_ADDRESS
from tocsin.web.context import (
    AccessRole,
    AuditedChange,
    Endpoint,
    ReloadResult,
    RequestContext,
    Response,
)
from tocsin.web.record_problems import (
    CONFIGURATION_INVALID,
    METRICS_LOCAL_ONLY,
    METRICS_TOKEN_REQUIRED,
)
from tocsin.web.request_problems import TOO_MANY_FAILURES
from tocsin.web.schemas.service import Liveness, Readiness, ReloadSummary


async def get_health(_call: RequestContext) -> Response:
    """Report that the process is alive."""
    return Response({"status": "ok"})


async def get_readiness(call: RequestContext) -> Response:
    """Report whether the node can currently store and deliver. If it cannot, the status is 503.

    A node whose intake accepts pushes is ready even while the database does not accept writes.
    """
    node = call.services.node
    fault = await node.check_database()
    roles, stalled = dict(node.roles), list(node.stalled)
    suspension = node.suspension
    waits = suspension is not None or node.routing_hold is not None
    intake = call.services.inbox.intake
    accepts = intake.is_available
    if fault is None:
        ready = not waits and not stalled and all(roles.values())
    else:  # loops stall without a database, and do not matter to senders
        ready = accepts and suspension is None
    content = {
        "status": "ready" if ready else "not ready",
        "intake": None if isinstance(intake, NoIntake) else accepts,
        "database": fault is None,
        "fault": None if fault is None else fault.value,
        "roles": roles,
        "stalled": stalled,
        "suspended": suspension,
        "routing_on_hold": node.routing_hold,
        "differing": list(node.drift),
    }
    return Response(content, status=200 if ready else 503)


async def _read_files(call: RequestContext) -> ReloadResult:
    """Reload the node's files; if one has errors, raise ProblemError (409) without any change."""
    try:
        return await call.services.node.reload()
    except OperatorError as error:
        raise CONFIGURATION_INVALID.error(problems=str(error).splitlines()) from None


def reload_node(_connection: Connection, call: RequestContext) -> Response:
    """Read this node's files again and restart only the changed parts.

    The files contain the settings, secrets, templates and plugins. With PostgreSQL, the applied
    destinations and schedules do not change. If a file has problems, nothing changes.
    """
    result: ReloadResult = call.prepared
    content: dict[str, Json] = {
        "changed": list(result.changed),
        "restart_required": list(result.restart_required),
        "differing": list(result.drift),
    }
    change = AuditedChange(target=f"node:{call.services.node.name}", details=content)
    return Response(content, change=change)


_PASSED_ON = (FORWARDED, hdrs.FORWARDED, hdrs.VIA, "X-Real-IP")
_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="tocsin"'}


async def get_metrics(call: RequestContext) -> Response:
    """Return the node's metrics in the Prometheus text format.

    If `TOCSIN_METRICS_TOKEN` is set, send it as `Authorization: Bearer`. The response to a wrong
    token is 401, or 429 after too many failed authentications. If it is not set, only
    callers on the same machine without a proxy have access. Other callers get 403.
    """
    if (token := call.services.metrics_token) is not None:
        await _require(token, call)
    elif not _is_local(call):
        raise METRICS_LOCAL_ONLY.error()
    return Response(await call.services.metrics.expose())


async def _require(token: str, call: RequestContext) -> None:
    if not _bears(call.request, token):
        services = call.services
        sent = call.request.headers.get(hdrs.AUTHORIZATION)
        await services.rate_limits.count_failure(services.addresses.find(call.request), sent)
        raise METRICS_TOKEN_REQUIRED.error(_CHALLENGE)


def _bears(request: web.Request, token: str) -> bool:
    scheme, _, sent = request.headers.get(hdrs.AUTHORIZATION, "").partition(" ")
    is_same = hmac.compare_digest(sent.strip().encode(errors="surrogateescape"), token.encode())
    return is_same and scheme.casefold() == "bearer"


def _is_local(call: RequestContext) -> bool:
    """Return whether the caller connects directly from this machine."""
    if any(name in call.request.headers for name in _PASSED_ON):
        return False
    address = call.services.addresses.find(call.request)
    return address != UNKNOWN_ADDRESS and ip_address(address).is_loopback


ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/healthz",
        access=AccessRole.PUBLIC,
        summary="Check that the process is alive",
        handler=get_health,
        response=Liveness,
    ),
    Endpoint(
        method="GET",
        path="/readyz",
        access=AccessRole.PUBLIC,
        summary="Check that the node can store and deliver",
        handler=get_readiness,
        response=Readiness,
        other_statuses=(503,),
    ),
    Endpoint(
        method="POST",
        path="/api/admin/reload",
        access=AccessRole.ADMIN,
        summary="Reload the configuration files of this node",
        handler=reload_node,
        prepare=_read_files,
        action="node.reload",
        response=ReloadSummary,
        problems=(CONFIGURATION_INVALID,),
    ),
    Endpoint(
        method="GET",
        path="/metrics",
        access=AccessRole.PUBLIC,
        summary="Get the metrics of this node for Prometheus",
        handler=get_metrics,
        media_type=MEDIA_TYPE,
        problems=(METRICS_TOKEN_REQUIRED, METRICS_LOCAL_ONLY, TOO_MANY_FAILURES),
    ),
)
