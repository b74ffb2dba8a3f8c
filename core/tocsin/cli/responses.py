"""Responses of the HTTP API: parsing, errors and printing."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import orjson
from pydantic import BaseModel, ValidationError

from tocsin.cli.output import print_json, print_text, to_line
from tocsin.errors import OperatorError
from tocsin.hookspecs import HttpResponse


class RefusedRequestError(OperatorError):
    """The service refused a request; the message states the status and the reason."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class ResponseMembers(dict[str, Any]):
    """Members of a JSON response; raises OperatorError for a missing required member."""

    def __missing__(self, name: str) -> Any:
        raise OperatorError(
            f"unexpected response (no field {name!r}); "
            "check that --url or TOCSIN_URL points to Tocsin"
        )


def read_response(
    response: HttpResponse, options: Mapping[str, str] | None = None
) -> ResponseMembers:
    """Return the members of a response; raises RefusedRequestError with the reason of a refusal.

    `options` names the options of the command whose names differ from the fields of the request.

    The command then prints the reason and exits with status 2, as for every OperatorError.
    """
    if not HTTPStatus.OK <= response.status < HTTPStatus.MULTIPLE_CHOICES:
        raise RefusedRequestError(_describe_refusal(response, options or {}), response.status)
    try:
        return ResponseMembers(orjson.loads(response.body))
    except (ValueError, TypeError):
        raise OperatorError(_describe_foreign(response)) from None


def print_secret(answer: ResponseMembers, *members: str, remark: str, as_json: bool) -> None:
    """Print these members alone on standard output, and the remark on standard error."""
    if as_json:
        print_json(answer)
    else:
        print_text("\t".join(answer[name] for name in members))
        print_text(f"{remark}. Copy the output now: it cannot be shown again.", file=sys.stderr)


class _FieldProblem(BaseModel):
    path: str
    detail: str


class _ProblemDocument(BaseModel):
    """Displayed members of a problem document (RFC 9457)."""

    detail: str
    errors: list[_FieldProblem] = []


def _describe_refusal(response: HttpResponse, options: Mapping[str, str]) -> str:
    try:
        problem = _ProblemDocument.model_validate_json(response.body)
    except ValidationError:
        return _describe_foreign(response)
    lines = [f"{response.status}: {to_line(problem.detail)}"]
    for mistake in problem.errors:
        place = options.get(mistake.path, mistake.path)
        lines.append("  " + to_line(f"{place}: {mistake.detail}" if place else mistake.detail))
    if response.status == HTTPStatus.UNAUTHORIZED:
        lines.append(
            "the credential might have expired; to get a new one, run `tocsin admin token` or "
            "`tocsin keys create`"
        )
    if response.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        lines.append(f"X-Request-Id: {response.headers.get('X-Request-Id', 'none')}")
    return "\n".join(lines)


def _describe_foreign(response: HttpResponse) -> str:
    """Return the error for a response that is not from Tocsin, such as a proxy's page."""
    kind = response.headers.get("Content-Type", "unknown")
    location = response.headers.get("Location")
    leads = f", redirecting to {location}" if location else ""
    return (
        f"received status {response.status} with content type {kind}{leads} instead of JSON from "
        "Tocsin; check that --url or TOCSIN_URL is the address of Tocsin, and check any proxies in "
        "between"
    )
