"""Endpoints for providers and their backfills."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection

from tocsin import incidents
from tocsin.clock import isoformat
from tocsin.credentials import ConsoleRole
from tocsin.hookspecs import Capability
from tocsin.incidents import BackfillOrigin, BackfillState
from tocsin.model import Window
from tocsin.stops import StopKind, StopOrder, begin_stop, end_stop
from tocsin.validation import suggest_nearest
from tocsin.web.context import AccessRole, AuditedChange, Endpoint, RequestContext, Response
from tocsin.web.pagination import PageCursor, page_response
from tocsin.web.record_problems import (
    BACKFILL_NOT_FOUND,
    FUTURE_BACKFILL,
    NO_BACKFILLS,
    PROVIDER_NOT_FOUND,
    UNKNOWN_PROVIDER,
)
from tocsin.web.routes.stop_orders import (
    describe_stop_order,
    read_stop_order,
    translate_stop_errors,
)
from tocsin.web.schemas.providers import (
    LIST,
    BackfillItem,
    BackfillList,
    BackfillQuery,
    NewBackfill,
    ProviderChange,
    ProviderItem,
    ProviderList,
)


def list_providers(connection: Connection, call: RequestContext) -> Response:
    """Return all providers and their status."""
    services = call.services
    found = incidents.list_providers(connection, services.providers, services.clock.now())
    return Response({"providers": found, "total": len(found)})


def update_provider(connection: Connection, call: RequestContext) -> Response:
    """Disable or enable a provider, and return it.

    While the provider is disabled, Tocsin does not read it, pushes get 503, and backfills wait.
    """
    name = call.path["provider"]
    order, now = read_stop_order(call), call.services.clock.now()
    provider = _represent_provider(connection, call, name)
    is_changed = False
    if isinstance(order, StopOrder):
        with translate_stop_errors():
            is_changed = begin_stop(connection, StopKind.PROVIDER, name, order, now) is not None
    elif order:
        is_changed = end_stop(connection, StopKind.PROVIDER, name, call.principal.name, now)
    if not is_changed:
        return Response(provider)
    action = "provider.enable" if order is True else "provider.disable"
    details = describe_stop_order(order)
    change = AuditedChange(target=f"provider:{name}", details=details, action=action)
    return Response(_represent_provider(connection, call, name), change=change)


def _represent_provider(connection: Connection, call: RequestContext, name: str) -> dict[str, Any]:
    services = call.services
    for provider in incidents.list_providers(connection, services.providers, services.clock.now()):
        if provider["name"] == name:
            return provider
    raise PROVIDER_NOT_FOUND.error()


_PREFIX = "bkf_"


def create_backfill(connection: Connection, call: RequestContext) -> Response:
    """Start backfilling a time range, and return the backfill."""
    body: NewBackfill = call.body
    _require_able(call, body.provider)
    now = call.services.clock.now()
    if body.to > now:
        raise FUTURE_BACKFILL.error(now=isoformat(now))
    made = incidents.create_backfill(
        connection,
        body.provider,
        Window(body.from_, body.to),
        alert=body.alert,
        origin=BackfillOrigin.OPERATOR,
        by=call.principal.name,
        now=now,
    )
    details = {name: made[name] for name in ("provider", "from", "to", "alert")}
    return Response(made, change=AuditedChange(target=f"backfill:{made['id']}", details=details))


def _require_able(call: RequestContext, name: str) -> None:
    """Raise ProblemError (422) for an unknown provider, or one without backfills."""
    known = {facts.name: facts for facts in call.services.providers}
    if name not in known:
        suggestion = suggest_nearest(name, sorted(known)) or "."
        raise UNKNOWN_PROVIDER.error(provider=name, suggestion=suggestion)
    if Capability.BACKFILL not in known[name].capabilities:
        raise NO_BACKFILLS.error(plugin=known[name].plugin)


def list_backfills(connection: Connection, call: RequestContext) -> Response:
    """Return one page of backfills, newest first."""
    query: BackfillQuery = call.query
    before = _PREFIX + query.cursor.before if query.cursor else None
    page = incidents.list_backfills(
        connection, limit=query.limit, provider=query.provider, before=before
    )
    content = {"backfills": page.backfills, "total": page.total}
    following = PageCursor(LIST, page.next.removeprefix(_PREFIX)) if page.next else None
    return page_response(call, content, following)


def get_backfill(connection: Connection, call: RequestContext) -> Response:
    """Return a backfill with its progress."""
    return Response(_find(connection, call))


def cancel_backfill(connection: Connection, call: RequestContext) -> Response:
    """Cancel a backfill and return it. A finished backfill does not change."""
    id_, now = call.path["backfill_id"], call.services.clock.now()
    cancelled = incidents.end_backfill(connection, id_, BackfillState.CANCELLED, now)
    found = _find(connection, call)
    change = AuditedChange(target=f"backfill:{id_}", details={"records": found["records"]})
    return Response(found, change=change if cancelled else None)


def _find(connection: Connection, call: RequestContext) -> dict[str, Any]:
    found = incidents.load_backfill(connection, call.path["backfill_id"])
    if found is None:
        raise BACKFILL_NOT_FOUND.error()
    return found


_BACKFILLS = "/api/admin/backfills"
_BACKFILL = f"{_BACKFILLS}/{{backfill_id}}"

ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/api/admin/providers",
        access=AccessRole.ADMIN,
        role=ConsoleRole.VIEWER,
        summary="List providers and their status",
        handler=list_providers,
        response=ProviderList,
    ),
    Endpoint(
        method="PATCH",
        path="/api/admin/providers/{provider}",
        access=AccessRole.ADMIN,
        summary="Disable or enable a provider",
        handler=update_provider,
        role=ConsoleRole.OPERATOR,
        body=ProviderChange,
        response=ProviderItem,
        action="provider.disable",
        problems=(PROVIDER_NOT_FOUND,),
    ),
    Endpoint(
        method="POST",
        path=_BACKFILLS,
        access=AccessRole.ADMIN,
        summary="Backfill a time range from a provider in the background",
        handler=create_backfill,
        role=ConsoleRole.OPERATOR,
        body=NewBackfill,
        response=BackfillItem,
        action="backfill.create",
        idempotent=True,
        status=202,
        problems=(FUTURE_BACKFILL, UNKNOWN_PROVIDER, NO_BACKFILLS),
    ),
    Endpoint(
        method="GET",
        path=_BACKFILLS,
        access=AccessRole.ADMIN,
        role=ConsoleRole.VIEWER,
        summary="List backfills, newest first",
        handler=list_backfills,
        query=BackfillQuery,
        response=BackfillList,
    ),
    Endpoint(
        method="GET",
        path=_BACKFILL,
        access=AccessRole.ADMIN,
        role=ConsoleRole.VIEWER,
        summary="Get a backfill and its progress",
        handler=get_backfill,
        is_brief=True,
        response=BackfillItem,
        problems=(BACKFILL_NOT_FOUND,),
    ),
    Endpoint(
        method="POST",
        path=f"{_BACKFILL}/cancel",
        access=AccessRole.ADMIN,
        summary="Cancel a backfill",
        handler=cancel_backfill,
        role=ConsoleRole.OPERATOR,
        response=BackfillItem,
        action="backfill.cancel",
        problems=(BACKFILL_NOT_FOUND,),
    ),
)
