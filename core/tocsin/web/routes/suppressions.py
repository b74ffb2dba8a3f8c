"""Endpoints for suppression rules."""

from __future__ import annotations

from sqlalchemy import Connection, RowMapping

from tocsin import delivery
from tocsin.clock import isoformat
from tocsin.credentials import ConsoleRole
from tocsin.delivery import NewSuppression, SuppressionNameTakenError
from tocsin.errors import InvalidInputError
from tocsin.model import Json
from tocsin.web.context import AccessRole, AuditedChange, Endpoint, RequestContext, Response
from tocsin.web.pagination import PageCursor, page_response
from tocsin.web.parsing import invalid_member
from tocsin.web.record_problems import SUPPRESSION_NAME_TAKEN, SUPPRESSION_NOT_FOUND
from tocsin.web.routes.sessions import require_provider
from tocsin.web.schemas.suppressions import (
    LIST,
    NewSuppressionRule,
    SuppressionItem,
    SuppressionList,
    SuppressionQuery,
)

_CONDITIONS = ("provider", "title", "entity", "cidr")


def create_suppression(connection: Connection, call: RequestContext) -> Response:
    """Create a suppression rule and return it."""
    body: NewSuppressionRule = call.body
    require_provider(call, body.provider)
    rule = NewSuppression(**body.model_dump())
    now = call.services.clock.now()
    try:
        made = delivery.create_suppression(connection, rule, call.principal.name, now)
    except SuppressionNameTakenError:
        raise SUPPRESSION_NAME_TAKEN.error(name=rule.name) from None
    except InvalidInputError as error:
        raise invalid_member("ends_at", str(error)) from None
    content = _represent(made, call)
    details = {name: content[name] for name in ("owner", "reason", *_CONDITIONS, "ends_at")}
    return Response(content, change=AuditedChange(target=_target(rule.name), details=details))


def list_suppressions(connection: Connection, call: RequestContext) -> Response:
    """Return one page of suppression rules, by name."""
    query: SuppressionQuery = call.query
    after = query.cursor.name if query.cursor else None
    active_at = call.services.clock.now() if query.active else None
    rows = delivery.list_suppressions(connection, query.limit + 1, after=after, active_at=active_at)
    shown = rows[: query.limit]
    following = PageCursor.at_name(LIST, shown[-1]["name"]) if len(rows) > len(shown) else None
    return page_response(
        call, {"suppressions": [_represent(row, call) for row in shown]}, following
    )


def get_suppression(connection: Connection, call: RequestContext) -> Response:
    """Return a suppression rule."""
    return Response(_represent(_find(connection, call), call))


def disable_suppression(connection: Connection, call: RequestContext) -> Response:
    """End a suppression rule now and return it. A rule that has already ended does not change."""
    name = _find(connection, call)["name"]
    ended = delivery.end_suppression(connection, name, call.services.clock.now())
    change = AuditedChange(target=_target(name), details={}) if ended else None
    return Response(_represent(_find(connection, call), call), change=change)


def _find(connection: Connection, call: RequestContext) -> RowMapping:
    found = delivery.load_suppression(connection, call.path["name"])
    if found is None:
        raise SUPPRESSION_NOT_FOUND.error()
    return found


def _target(name: str) -> str:
    return f"suppression:{name}"


def _represent(row: RowMapping, call: RequestContext) -> dict[str, Json]:
    return {
        **{name: row[name] for name in ("name", "owner", "reason", *_CONDITIONS)},
        "is_active": row["ends_at"] > call.services.clock.now(),
        "suppressed_events": row["suppressed_events"],
        "created_by": row["created_by"],
        "created_at": isoformat(row["created_at"]),
        "ends_at": isoformat(row["ends_at"]),
    }


_SUPPRESSIONS = "/api/admin/suppressions"
_SUPPRESSION = f"{_SUPPRESSIONS}/{{name}}"

ENDPOINTS = (
    Endpoint(
        method="POST",
        path=_SUPPRESSIONS,
        access=AccessRole.ADMIN,
        summary="Create a suppression rule",
        handler=create_suppression,
        role=ConsoleRole.OPERATOR,
        body=NewSuppressionRule,
        response=SuppressionItem,
        action="suppression.create",
        idempotent=True,
        status=201,
        problems=(SUPPRESSION_NAME_TAKEN,),
    ),
    Endpoint(
        method="GET",
        path=_SUPPRESSIONS,
        access=AccessRole.ADMIN,
        role=ConsoleRole.VIEWER,
        summary="List suppression rules by name",
        handler=list_suppressions,
        query=SuppressionQuery,
        response=SuppressionList,
    ),
    Endpoint(
        method="GET",
        path=_SUPPRESSION,
        access=AccessRole.ADMIN,
        role=ConsoleRole.VIEWER,
        summary="Get a suppression rule",
        handler=get_suppression,
        is_brief=True,
        response=SuppressionItem,
        problems=(SUPPRESSION_NOT_FOUND,),
    ),
    Endpoint(
        method="DELETE",
        path=_SUPPRESSION,
        access=AccessRole.ADMIN,
        summary="End a suppression rule now",
        handler=disable_suppression,
        role=ConsoleRole.OPERATOR,
        response=SuppressionItem,
        action="suppression.end",
        problems=(SUPPRESSION_NOT_FOUND,),
    ),
)
