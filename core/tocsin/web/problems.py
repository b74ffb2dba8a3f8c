"""Problem types, the errors that report them, and their documents (RFC 9457)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from http import HTTPStatus

import orjson
import structlog
from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field

from tocsin.errors import (
    AccessDeniedError,
    ConflictError,
    InvalidInputError,
    NotFoundError,
    RequestError,
)
from tocsin.logs import SampledLog
from tocsin.store import find_fault

CONTENT_TYPE = "application/problem+json"
BODY_LIMIT = 64 * 1024
"""Maximum size of a request's body, in bytes."""
BODY_TIMEOUT = 30
"""How many seconds a body can take to arrive."""

_STATUSES: Mapping[type[RequestError], int] = {
    InvalidInputError: 422,
    NotFoundError: 404,
    ConflictError: 409,
    AccessDeniedError: 403,
}
"""The status of each kind of error that the domain raises."""

_log = structlog.get_logger()
_sampled = SampledLog()


class FieldError(BaseModel):
    """An invalid field of a request."""

    path: str = Field(
        description="Location of the field: the name of a parameter, or a dotted path in the body."
    )
    detail: str


class ProblemDocument(BaseModel):
    """Problem details (RFC 9457)."""

    model_config = ConfigDict(extra="forbid")

    type: str = Field(description="The problem type, as a URI reference.")
    title: str
    status: int
    detail: str
    instance: str = Field(description="The path of the request.")
    required_scope: str | None = Field(default=None, description="The scope that the caller lacks.")
    errors: list[FieldError] | None = Field(default=None, description="All invalid fields.")
    problems: list[str] | None = Field(
        default=None, description="All problems in the node's configuration files."
    )
    record: str | None = Field(
        default=None,
        description="The record that an earlier request with the same Idempotency-Key created "
        "or changed.",
    )


class OAuthErrorDocument(BaseModel):
    """OAuth 2.0 error (RFC 6749 section 5.2)."""

    model_config = ConfigDict(extra="forbid")

    error: str = Field(description="The error code.")
    error_description: str


class ProblemKind(Enum):
    """Type and title of problems that programs cannot distinguish by their status alone."""

    GENERAL = "about:blank", ""
    MISSING_SCOPE = "/problems/missing-scope", "The credential lacks a scope"
    INVALID_REQUEST = "/problems/invalid-request", "The request is not valid"
    INVALID_SCOPE = "/problems/invalid-scope", "Unknown scope"
    TOO_MANY_REQUESTS = "/problems/too-many-requests", "Too many requests"
    NOT_ACTIVE = "/problems/not-active", "The credential is not active"
    IDEMPOTENCY_KEY_REUSED = (
        "/problems/idempotency-key-reused",
        "The Idempotency-Key was used for a different request",
    )
    IDEMPOTENCY_KEY_IN_FLIGHT = (
        "/problems/idempotency-key-in-flight",
        "The first request with this key is in progress",
    )
    MANAGED_BY_FILE = "/problems/managed-by-file", "The record cannot be changed over HTTP"
    NAME_TAKEN = "/problems/name-taken", "The name is taken"
    INVALID_CONFIGURATION = "/problems/invalid-configuration", "The configuration contains errors"
    PLUGIN_FAILED = "/problems/plugin-failed", "A plugin failed"
    SECRET_SHOWN = "/problems/secret-shown", "The secret was already shown"


class ProblemError(RequestError):
    """A problem to report to the caller, with its status and its members."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        members: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.members = dict(members or {})
        self.headers = dict(headers or {})


class OAuthError(RequestError):
    """An error of an OAuth 2.0 endpoint, reported in the format of RFC 6749 section 5.2."""

    def __init__(
        self,
        code: str,
        description: str,
        *,
        status: int = 400,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(description)
        self.status = status
        self.headers = dict(headers or {})
        self.content = {"error": code, "error_description": description}


@dataclass(frozen=True, slots=True)
class ProblemType:
    """A kind of problem; `error` takes the values that its detail contains."""

    name: str
    """Name of its example in the OpenAPI document."""
    status: int
    detail: str
    """A format string."""
    kind: ProblemKind = ProblemKind.GENERAL
    members: tuple[str, ...] = ()
    """Names of the values that the problem document also contains as members."""
    example: Mapping[str, object] = field(default_factory=dict, hash=False)
    """The values in the OpenAPI document."""
    path: str = "/api/v1/incidents/4711"
    """The `instance` in the OpenAPI document."""

    def error(self, headers: Mapping[str, str] | None = None, /, **values: object) -> ProblemError:
        """Return the error to raise for these values."""
        type_, title = self.kind.value
        members: dict[str, object] = {
            "type": type_,
            "title": title or HTTPStatus(self.status).phrase,
        }
        members |= {name: values[name] for name in self.members}
        detail = self.detail.format(**values)
        return ProblemError(self.status, detail, members=members, headers=headers)

    def build_example(self) -> dict[str, object]:
        """Return the example in the OpenAPI document."""
        error = self.error(**self.example)
        return build_document(self.path, error.status, error.detail, error.members)


@dataclass(frozen=True, slots=True)
class OAuthProblem:
    """A kind of OAuth 2.0 error; `error` takes the values that its description contains."""

    name: str
    """The error code, which is also the name of its example in the OpenAPI document."""
    detail: str
    status: int = 400
    example: Mapping[str, object] = field(default_factory=dict, hash=False)

    def error(self, headers: Mapping[str, str] | None = None, /, **values: object) -> OAuthError:
        """Return the error to raise for these values."""
        detail = self.detail.format(**values)
        return OAuthError(self.name, detail, status=self.status, headers=headers)

    def build_example(self) -> dict[str, str]:
        """Return the example in the OpenAPI document."""
        return self.error(**self.example).content


def domain_problem(name: str, error: RequestError, path: str) -> ProblemType:
    """Return the problem that reports a domain error."""
    return ProblemType(name, find_status(error), str(error), path=path)


def find_status(error: RequestError) -> int:
    """Return the HTTP status for a domain error; 400 if its kind has no specific status."""
    return next((status for kind, status in _STATUSES.items() if isinstance(error, kind)), 400)


INTERNAL_ERROR = ProblemType(
    "internal-error",
    500,
    "Internal error; the service log contains the details under this X-Request-Id.",
)
DATABASE_UNAVAILABLE = ProblemType(
    "database-unavailable",
    503,
    "The database is unavailable ({fault}); try again later.",
    example={"fault": "unreachable"},
)
BODY_TOO_LARGE = ProblemType("body-too-large", 413, f"The body exceeds {BODY_LIMIT} bytes.")
INCOMPLETE_BODY = ProblemType(
    "incomplete-body", 400, "The body does not have the length or encoding that the headers state."
)
PATH_NOT_FOUND = ProblemType("path-not-found", 404, "There is no endpoint at this path.")
METHOD_NOT_ALLOWED = ProblemType(
    "method-not-allowed",
    405,
    "This path supports only {methods}.",
    example={"methods": "GET, HEAD, OPTIONS"},
)


def describe_error(request: web.BaseRequest, error: Exception) -> ProblemError:
    """Return the problem to report for any error; log an unexpected error with its details."""
    match error:
        case ProblemError():
            return error
        case RequestError():
            return ProblemError(find_status(error), str(error))
        case web.HTTPException():
            return _describe_http_exception(error)
        case web.RequestPayloadError():
            return INCOMPLETE_BODY.error()
        case _ if (fault := find_fault(error)) is not None:
            reason = str(getattr(error, "orig", None) or error)
            _sampled.warning(fault.summary, path=request.path, reason=reason, advice=fault.advice)
            return DATABASE_UNAVAILABLE.error({"Retry-After": "5"}, fault=fault.value)
        case _:
            _log.error("request failed", method=request.method, path=request.path, exc_info=error)
            return INTERNAL_ERROR.error()


def _describe_http_exception(error: web.HTTPException) -> ProblemError:
    match error:
        case web.HTTPMethodNotAllowed():
            methods = ", ".join(sorted(error.allowed_methods))
            return METHOD_NOT_ALLOWED.error({"Allow": methods}, methods=methods)
        case web.HTTPRequestEntityTooLarge():
            return BODY_TOO_LARGE.error()
        case web.HTTPNotFound():
            return PATH_NOT_FOUND.error()
        case _:
            return ProblemError(error.status, error.reason)


def problem_response(request: web.BaseRequest, error: Exception) -> web.Response:
    """Return the response to an error that a handler raised."""
    if isinstance(error, OAuthError):
        headers = {**error.headers, "Cache-Control": "no-store", "Pragma": "no-cache"}
        return _json(error.content, error.status, headers, "application/json")
    problem = describe_error(request, error)
    content = build_document(
        request.rel_url.raw_path, problem.status, problem.detail, problem.members
    )
    return _json(content, problem.status, problem.headers, CONTENT_TYPE)


def to_oauth_error(problem: ProblemError) -> OAuthError:
    """Return a problem in the format of RFC 6749 section 5.2, which has few error codes."""
    match problem.status:
        case 429 | 503:
            code = "temporarily_unavailable"
        case 500:
            code = "server_error"
        case 413:
            code = "invalid_request"
        case _:
            return OAuthError("invalid_request", problem.detail)
    return OAuthError(code, problem.detail, status=problem.status, headers=problem.headers)


def build_document(
    path: str, status: int, detail: str, members: Mapping[str, object]
) -> dict[str, object]:
    """Return a problem document."""
    return {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "instance": path,
        **members,
    }


def _json(
    content: object, status: int, headers: Mapping[str, str], content_type: str
) -> web.Response:
    body = orjson.dumps(content)
    return web.Response(body=body, status=status, headers=headers, content_type=content_type)
