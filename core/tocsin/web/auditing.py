"""The audit log's entry of what a request does."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from aiohttp import web

from tocsin import audit
from tocsin.model import Json
from tocsin.web.calls import ApiServices
from tocsin.web.headers import REQUEST_ID_KEY


def build_audit_entry(
    services: ApiServices,
    request: web.Request,
    at: datetime,
    *,
    actor: str,
    action: str,
    target: str | None,
    details: Mapping[str, Json],
) -> audit.AuditRecord:
    """Return the entry of what is done by a request, with its address and its id."""
    return audit.AuditRecord(
        at=at,
        actor=actor,
        action=action,
        target=target,
        address=services.addresses.of(request),
        request_id=request[REQUEST_ID_KEY],
        details=details,
    )
