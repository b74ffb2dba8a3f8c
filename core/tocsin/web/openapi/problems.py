"""Problems that an endpoint can report, from its access, its body and its own declarations."""

from __future__ import annotations

from collections.abc import Iterator

from tocsin.web.context import AccessRole, Endpoint
from tocsin.web.problems import (
    BODY_TOO_LARGE,
    DATABASE_UNAVAILABLE,
    INTERNAL_ERROR,
    OAuthProblem,
    ProblemType,
    to_oauth_error,
)
from tocsin.web.record_problems import (
    PUSHES_UNDER_WAY,
    UNAUTHORIZED_PUSH,
    UNAUTHORIZED_WEBHOOK,
    WEBHOOK_TOO_LARGE,
)
from tocsin.web.request_problems import (
    ADMIN_REQUIRED,
    BODY_TOO_SLOW,
    IDEMPOTENCY_KEY_IN_FLIGHT,
    IDEMPOTENCY_KEY_REUSED,
    INVALID_CLIENT,
    INVALID_FORM,
    INVALID_IDEMPOTENCY_KEY,
    INVALID_JSON,
    INVALID_REQUEST,
    INVALID_SCOPE,
    LENGTH_REQUIRED,
    MISSING_SCOPE,
    NOT_ACCEPTABLE,
    SECRET_SHOWN,
    TOO_MANY_FAILURES,
    TOO_MANY_REQUESTS,
    TWO_CREDENTIALS,
    UNAUTHORIZED,
    UNAUTHORIZED_ADMIN,
    UNSUPPORTED_ENCODING,
    UNSUPPORTED_MEDIA_TYPE,
)

Problem = ProblemType | OAuthProblem


def list_problems(endpoint: Endpoint) -> Iterator[Problem]:
    """Yield every problem that the endpoint can report."""
    if endpoint.access is AccessRole.CLIENT:
        yield from (INVALID_FORM, INVALID_CLIENT)
        for problem in (BODY_TOO_LARGE, TOO_MANY_REQUESTS, INTERNAL_ERROR, DATABASE_UNAVAILABLE):
            yield _convert(problem)
    else:
        yield from _list_access_problems(endpoint)
        yield from _list_body_problems(endpoint)
        yield from _list_idempotency_problems(endpoint)
        yield from (NOT_ACCEPTABLE, INVALID_REQUEST, INTERNAL_ERROR)
    yield from endpoint.problems


def _convert(problem: ProblemType) -> OAuthProblem:
    """Return the OAuth 2.0 error that corresponds to a problem."""
    error = to_oauth_error(problem.error(**problem.example))
    return OAuthProblem(
        error.content["error"], error.content["error_description"], status=error.status
    )


def _list_access_problems(endpoint: Endpoint) -> Iterator[Problem]:
    match endpoint.access:
        case AccessRole.PUBLIC:
            return
        case AccessRole.SENDER:
            yield from (UNAUTHORIZED_PUSH, TOO_MANY_FAILURES)
        case AccessRole.WEBHOOK:
            yield from (UNAUTHORIZED_WEBHOOK, TOO_MANY_FAILURES, TOO_MANY_REQUESTS)
        case AccessRole.ADMIN:
            yield from (TWO_CREDENTIALS, UNAUTHORIZED_ADMIN, ADMIN_REQUIRED, TOO_MANY_REQUESTS)
        case _:
            yield from (TWO_CREDENTIALS, UNAUTHORIZED, MISSING_SCOPE, TOO_MANY_REQUESTS)
    yield DATABASE_UNAVAILABLE


def _list_body_problems(endpoint: Endpoint) -> Iterator[Problem]:
    if endpoint.body is None:
        return
    yield from (BODY_TOO_SLOW, UNSUPPORTED_MEDIA_TYPE, UNSUPPORTED_ENCODING)
    if endpoint.body_required:
        yield LENGTH_REQUIRED
    if endpoint.access is AccessRole.WEBHOOK:  # whose body the destination reads
        yield from (WEBHOOK_TOO_LARGE, PUSHES_UNDER_WAY)
    elif endpoint.access is not AccessRole.SENDER:  # whose body the provider reads
        yield from (INVALID_JSON, BODY_TOO_LARGE)
    if "scopes" in endpoint.body.model_fields:
        yield INVALID_SCOPE


def _list_idempotency_problems(endpoint: Endpoint) -> Iterator[Problem]:
    if endpoint.idempotent:
        yield from (INVALID_IDEMPOTENCY_KEY, IDEMPOTENCY_KEY_REUSED, IDEMPOTENCY_KEY_IN_FLIGHT)
        if endpoint.shows_secret:
            yield SECRET_SHOWN
