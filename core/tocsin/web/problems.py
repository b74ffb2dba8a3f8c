"""Errors as problem documents (RFC 9457)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from http import HTTPStatus

import orjson
import structlog
from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field

from tocsin.errors import CallerError, TocsinError
from tocsin.store import is_unreachable

CONTENT_TYPE = "application/problem+json"
BODY_LIMIT = 64 * 1024

_log = structlog.get_logger()


class FieldError(BaseModel):
    """One wrong field of a request."""

    path: str = Field(description="Where it is: a parameter, or keys of the body joined by dots.")
    detail: str


class ProblemDocument(BaseModel):
    """What went wrong (RFC 9457)."""

    model_config = ConfigDict(extra="forbid")

    type: str = Field(description="The kind of problem, as a URI reference.")
    title: str
    status: int
    detail: str
    instance: str = Field(description="The path that was asked for.")
    required_scope: str | None = Field(default=None, description="The scope that is missing.")
    errors: list[FieldError] | None = Field(default=None, description="Every wrong field.")
    record: str | None = Field(
        default=None, description="What an earlier request with the same Idempotency-Key made."
    )


class OAuthErrorDocument(BaseModel):
    """What went wrong, as OAuth 2.0 has it (RFC 6749 section 5.2)."""

    model_config = ConfigDict(extra="forbid")

    error: str = Field(description="The kind of error.")
    error_description: str


class ProblemType(Enum):
    """The problems that a program may want to tell apart beyond their status."""

    MISSING_SCOPE = "/problems/missing-scope", "The credential lacks a scope"
    INVALID_REQUEST = "/problems/invalid-request", "The request is not valid"
    INVALID_SCOPE = "/problems/invalid-scope", "There is no such scope"
    TOO_MANY_REQUESTS = "/problems/too-many-requests", "Too many requests"
    NOT_ACTIVE = "/problems/not-active", "The credential is not active"
    IDEMPOTENCY_KEY_REUSED = "/problems/idempotency-key-reused", "The Idempotency-Key was used"
    IDEMPOTENCY_KEY_IN_FLIGHT = "/problems/idempotency-key-in-flight", "The first is under way"
    MANAGED_BY_FILE = "/problems/managed-by-file", "It is managed elsewhere than over HTTP"
    NAME_TAKEN = "/problems/name-taken", "The name is taken"
    SECRET_SHOWN = "/problems/secret-shown", "The answer held a secret, which is shown once"


def refusal(kind: ProblemType, status: int, detail: str, **members: object) -> CallerError:
    """Return the error to raise for a problem of this kind."""
    type_, title = kind.value
    return CallerError(status, detail, members={"type": type_, "title": title, **members})


class OAuthError(TocsinError):
    """An error of an OAuth 2.0 endpoint, answered in its own form (RFC 6749 section 5.2)."""

    def __init__(
        self,
        code: str,
        description: str,
        *,
        status: int = 400,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(description)
        self.status = status
        self.headers = headers or {}
        self.content = {"error": code, "error_description": description}


@dataclass(frozen=True, slots=True)
class ErrorResponse:
    """What an error means to whoever called."""

    status: int
    detail: str
    headers: Mapping[str, str] = field(default_factory=dict)
    members: Mapping[str, object] = field(default_factory=dict)


def describe_error(request: web.BaseRequest, error: Exception) -> ErrorResponse:
    """Return what to tell of any error; a bug is logged and told to nobody."""
    match error:
        case CallerError():
            return ErrorResponse(error.status, error.detail, error.headers, error.members)
        case web.HTTPException():
            return ErrorResponse(error.status, *_describe_http_exception(error))
        case web.RequestPayloadError():
            return ErrorResponse(400, "The body does not arrive as its headers say.")
        case _ if is_unreachable(error):
            reason = str(getattr(error, "orig", None) or error)
            _log.warning("the database cannot be reached", path=request.path, reason=reason)
            words = "The database cannot be reached for now; try again."
            return ErrorResponse(503, words, {"Retry-After": "5"})
        case _:
            _log.error("request failed", method=request.method, path=request.path, exc_info=error)
            return ErrorResponse(
                500, "This is a bug or a fault of ours; the log has it by X-Request-Id."
            )


def problem_response(request: web.BaseRequest, error: Exception) -> web.Response:
    """Return the answer to what a handler raised."""
    if isinstance(error, OAuthError):
        headers = {**error.headers, "Cache-Control": "no-store", "Pragma": "no-cache"}
        return _json(error.content, error.status, headers, "application/json")
    fault = describe_error(request, error)
    return problem_document(request, fault.status, fault.detail, fault.headers, fault.members)


def _describe_http_exception(error: web.HTTPException) -> tuple[str, Mapping[str, str]]:
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


def problem_document(
    request: web.BaseRequest,
    status: int,
    detail: str,
    headers: Mapping[str, str] | None = None,
    members: Mapping[str, object] | None = None,
) -> web.Response:
    """Return a problem document."""
    document = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "instance": request.rel_url.raw_path,
        **(members or {}),
    }
    return _json(document, status, headers or {}, CONTENT_TYPE)


def _json(
    content: object, status: int, headers: Mapping[str, str], content_type: str
) -> web.Response:
    body = orjson.dumps(content)
    return web.Response(body=body, status=status, headers=headers, content_type=content_type)
