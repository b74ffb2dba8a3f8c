"""Idempotency keys: a repeated request takes effect once (draft-ietf-httpapi-idempotency-key-07).

The response is stored in the same transaction as the change, so neither exists without the other.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

import orjson
from aiohttp import web
from pydantic import BaseModel
from sqlalchemy import Connection, bindparam, delete, select

from tocsin.errors import TocsinError
from tocsin.model import Json
from tocsin.store import build_insert
from tocsin.store.tables import idempotency_keys
from tocsin.web.context import AuditedChange, Response
from tocsin.web.request_problems import (
    IDEMPOTENCY_KEY_IN_FLIGHT,
    IDEMPOTENCY_KEY_REUSED,
    INVALID_IDEMPOTENCY_KEY,
    SECRET_SHOWN,
)

IDEMPOTENCY_KEY = "Idempotency-Key"
IDEMPOTENCY_REPLAYED = "Idempotency-Replayed"
LIFETIME = timedelta(hours=24)

# A structured-field string (RFC 8941); most callers send it without the quotes.
_KEY = re.compile(r'"([\x20-\x21\x23-\x5b\x5d-\x7e]{1,255})"|([\x21\x23-\x2b\x2d-\x7e]{1,255})')


class AlreadyApplied(TocsinError):  # noqa: N818 - a state, not an error
    """Another request with this key has taken effect."""


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """The response to the first request with a key."""

    fingerprint: str
    status: int
    content: Json
    record: str | None

    def replay(self, fingerprint: str) -> Response:
        """Return the stored response; raises ProblemError (409, 422) if it cannot be sent again."""
        if fingerprint != self.fingerprint:
            raise IDEMPOTENCY_KEY_REUSED.error()
        if self.content is None:
            raise SECRET_SHOWN.error(record=self.record)
        return Response(self.content, {IDEMPOTENCY_REPLAYED: "true"}, self.status)


@dataclass(frozen=True, slots=True)
class IdempotentRequest:
    """A request with an idempotency key."""

    caller: str
    key: str
    fingerprint: str = ""


def read_idempotency_key(request: web.Request) -> str | None:
    """Return the key of the request, if any; raises ProblemError (400) if it is malformed."""
    values = request.headers.getall(IDEMPOTENCY_KEY, [])
    if not values:
        return None
    match = _KEY.fullmatch(values[0].strip())
    if match is None or len(values) > 1:
        raise INVALID_IDEMPOTENCY_KEY.error()
    return match[1] or match[2]


def compute_fingerprint(request: web.Request, body: BaseModel | None) -> str:
    """Return a hash of the method, the path and the body of a request."""
    content = b"" if body is None else orjson.dumps(body.model_dump(mode="json"), option=_SORTED)
    parts = (request.method.encode(), request.rel_url.raw_path.encode(), content)
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


class InFlightRequests:
    """The requests with an idempotency key that this node is processing."""

    def __init__(self) -> None:
        self._attempts: set[tuple[str, str]] = set()

    @contextmanager
    def hold(self, attempt: IdempotentRequest) -> Iterator[None]:
        """Hold the key while the request runs; raises ProblemError (409) if it is already held."""
        name = attempt.caller, attempt.key
        if name in self._attempts:
            raise IDEMPOTENCY_KEY_IN_FLIGHT.error()
        self._attempts.add(name)
        try:
            yield
        finally:
            self._attempts.discard(name)


def find_stored_response(
    connection: Connection, attempt: IdempotentRequest, now: datetime
) -> StoredResponse | None:
    """Return the response to an earlier request with this key, if any."""
    values = {"caller": attempt.caller, "key": attempt.key, "oldest": now - LIFETIME}
    row = connection.execute(_find, values).one_or_none()
    return None if row is None else StoredResponse(*row)


def store_response(
    connection: Connection,
    attempt: IdempotentRequest,
    answer: Response,
    status: int,
    *,
    now: datetime,
    secret: bool,
) -> None:
    """Store the response in this transaction, without a secret; raises AlreadyApplied."""
    connection.execute(_forget, {"oldest": now - LIFETIME})
    row = {
        "caller": attempt.caller,
        "key": attempt.key,
        "fingerprint": attempt.fingerprint,
        "status": status,
        "content": None if secret else answer.content,
        "record": answer.change.target if isinstance(answer.change, AuditedChange) else None,
        "created_at": now,
    }
    statement = build_insert(connection, idempotency_keys).values(row).on_conflict_do_nothing()
    if not connection.execute(statement).rowcount:
        raise AlreadyApplied


_SORTED = orjson.OPT_SORT_KEYS
_t = idempotency_keys.c
_find = select(_t.fingerprint, _t.status, _t.content, _t.record).where(
    _t.caller == bindparam("caller"),
    _t.key == bindparam("key"),
    _t.created_at > bindparam("oldest"),
)
_forget = delete(idempotency_keys).where(_t.created_at <= bindparam("oldest"))
