"""Errors as problem documents (RFC 9457)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from http import HTTPStatus

import orjson
import structlog
from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field

from tocsin.errors import CallerError

CONTENT_TYPE = "application/problem+json"
BODY_LIMIT = 64 * 1024

_log = structlog.get_logger()


class Mistake(BaseModel):
    """One wrong field of a request."""

    path: str = Field(description="Where it is: a parameter, or keys of the body joined by dots.")
    detail: str


class Problem(BaseModel):
    """What went wrong (RFC 9457)."""

    model_config = ConfigDict(extra="forbid")

    type: str = Field(description="The kind of problem, as a URI reference.")
    title: str
    status: int
    detail: str
    instance: str = Field(description="The path that was asked for.")
    required_scope: str | None = Field(default=None, description="The scope that is missing.")
    errors: list[Mistake] | None = Field(default=None, description="Every wrong field.")


class Kind(Enum):
    """The problems that a program may want to tell apart beyond their status."""

    MISSING_SCOPE = "/problems/missing-scope", "The credential lacks a scope"
    INVALID_REQUEST = "/problems/invalid-request", "The request is not valid"
    INVALID_SCOPE = "/problems/invalid-scope", "There is no such scope"


def refusal(kind: Kind, status: int, detail: str, **members: object) -> CallerError:
    """Return the error to raise for a problem of this kind."""
    type_, title = kind.value
    return CallerError(status, detail, members={"type": type_, "title": title, **members})


def problem_response(request: web.Request, error: Exception) -> web.Response:
    """Return the answer to what a handler raised; a bug is logged and told to nobody."""
    match error:
        case CallerError():
            return _respond(request, error.status, error.detail, error.headers, error.members)
        case web.HTTPException():
            return _respond(request, error.status, *_of_aiohttp(error))
        case web.RequestPayloadError():
            return _respond(request, 400, "The body does not arrive as its headers say.")
        case _:
            _log.error("request failed", method=request.method, path=request.path, exc_info=error)
            return _respond(
                request, 500, "This is a bug or a fault of ours; the log has it by X-Request-Id."
            )


def _of_aiohttp(error: web.HTTPException) -> tuple[str, Mapping[str, str]]:
    match error:
        case web.HTTPMethodNotAllowed():
            allowed = ", ".join(sorted(error.allowed_methods))
            return f"This path takes {allowed}.", {"Allow": allowed}
        case web.HTTPRequestEntityTooLarge():
            return f"A body holds {BODY_LIMIT} bytes at most.", {}
        case web.HTTPNotFound():
            return "There is nothing at this path.", {}
        case _:
            return error.reason, {}


def _respond(
    request: web.Request,
    status: int,
    detail: str,
    headers: Mapping[str, str] | None = None,
    members: Mapping[str, object] | None = None,
) -> web.Response:
    document = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "instance": request.rel_url.raw_path,
        **(members or {}),
    }
    return web.Response(
        body=orjson.dumps(document), status=status, headers=headers, content_type=CONTENT_TYPE
    )
