"""What an endpoint changes: in one transaction with its audit row and its stored answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import cast

from aiohttp import web
from sqlalchemy import Connection

from tocsin import audit
from tocsin.web.auditing import build_audit_entry
from tocsin.web.calls import (
    ApiServices,
    AuditedChange,
    Endpoint,
    RequestContext,
    Response,
    TransactionHandler,
)
from tocsin.web.idempotency import (
    AlreadyApplied,
    IdempotentRequest,
    StoredResponse,
    find_stored_response,
    store_response,
)

ConfirmAccess = Callable[[Connection, web.Request], object]
"""Raises where whoever was let in may not do it any more."""


class MutationHandler:
    """Runs an endpoint's handler for callers who were let in."""

    def __init__(self, endpoint: Endpoint, services: ApiServices, confirm: ConfirmAccess) -> None:
        self._endpoint = endpoint
        self._services = services
        self._confirm = confirm

    async def change(
        self, call: RequestContext, attempt: IdempotentRequest | None = None
    ) -> Response:
        """Return what the handler answers, once all that it did is stored.

        With an `attempt` its answer is stored too; AlreadyDone where there is one for it.
        """
        if self._endpoint.prepare is not None:
            call = replace(call, prepared=await self._endpoint.prepare(call))
        return await self._services.database.write(self.apply, call, attempt)

    async def change_once(self, call: RequestContext, attempt: IdempotentRequest) -> Response:
        """Return what the handler answers, now or when the attempt was made before.

        CallerError (409, 422) where what was answered before cannot be answered again.
        """
        if (stored := await self._stored(attempt)) is None:
            try:
                return await self.change(call, attempt)
            except AlreadyApplied:  # meanwhile
                stored = await self._stored(attempt)
                assert stored is not None  # noqa: S101 - it was there a moment ago
        return stored.replay(attempt.fingerprint)

    async def _stored(self, attempt: IdempotentRequest) -> StoredResponse | None:
        now = self._services.clock.now()
        return await self._services.database.lookup(find_stored_response, attempt, now)

    def apply(
        self, connection: Connection, call: RequestContext, attempt: IdempotentRequest | None
    ) -> Response:
        """Return what the handler answers; to be called in a write."""
        endpoint = self._endpoint
        self._confirm(connection, call.request)
        answer = cast("TransactionHandler", endpoint.handler)(connection, call)
        now = self._services.clock.now()
        if endpoint.action is not None and answer.change is not None:
            audit.record(connection, self._entry(call, endpoint.action, answer.change, now))
        if attempt is not None:
            status = answer.status or endpoint.status
            secret = endpoint.shows_secret
            store_response(connection, attempt, answer, status, now=now, secret=secret)
        return answer

    def _entry(
        self, call: RequestContext, action: str, change: AuditedChange, now: datetime
    ) -> audit.AuditRecord:
        return build_audit_entry(
            self._services,
            call.request,
            now,
            actor=call.principal.id,
            action=change.action or action,
            target=change.target,
            details=change.details,
        )
