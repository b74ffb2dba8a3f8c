"""Endpoint for erasures of entities."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection

from tocsin.erasure import ErasureRequest, parse_entity
from tocsin.errors import InvalidInputError
from tocsin.web.context import (
    REQUEST_ID_KEY,
    AccessRole,
    Endpoint,
    RequestContext,
    Response,
)
from tocsin.web.parsing import invalid_member
from tocsin.web.schemas.erasures import ErasureReceipt, NewErasure


async def erase(call: RequestContext) -> dict[str, Any]:
    """Erase the entity in many short transactions, and return the receipt."""
    body: NewErasure = call.body
    try:
        entity = parse_entity(body.entity)
    except InvalidInputError as error:
        raise invalid_member("entity", str(error)) from None
    request = ErasureRequest(
        entity=entity,
        by=call.principal.id,
        address=call.services.addresses.find(call.request),
        request_id=call.request[REQUEST_ID_KEY],
        dry_run=body.dry_run,
    )
    return await call.services.eraser.erase(request)


def create_erasure(_connection: Connection, call: RequestContext) -> Response:
    """Erase an entity from all stored data and return the receipt."""
    return Response(call.prepared)


ENDPOINTS = (
    Endpoint(
        method="POST",
        path="/api/admin/erasures",
        access=AccessRole.ADMIN,
        summary="Erase an entity from all stored data",
        handler=create_erasure,
        prepare=erase,
        body=NewErasure,
        response=ErasureReceipt,
        action="entity.erase",
    ),
)
