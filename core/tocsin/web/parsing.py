"""Base models of requests and responses, and parsing of bodies."""

from __future__ import annotations

import asyncio
from collections import Counter
from itertools import islice
from typing import Any, TypeVar

from aiohttp import hdrs, web
from pydantic import BaseModel, ConfigDict, ValidationError
from yarl import URL

from tocsin.validation import explain_errors
from tocsin.web.problems import BODY_TIMEOUT, ProblemError
from tocsin.web.request_problems import (
    BODY_TOO_SLOW,
    INVALID_JSON,
    INVALID_REQUEST,
    LENGTH_REQUIRED,
    UNSUPPORTED_ENCODING,
    UNSUPPORTED_MEDIA_TYPE,
)

MAX_PARAMETERS = 50
"""Maximum number of parameters of a query; each wrong one takes time and a line of the response."""
MAX_SHOWN_ERRORS = 50
Model = TypeVar("Model", bound=BaseModel)


class QueryModel(BaseModel):
    """Base of the query parameters of all endpoints; by itself, none."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class BodyModel(BaseModel):
    """Base of the JSON bodies of all endpoints."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)


class ResponseModel(BaseModel):
    """Base of all responses; other members than those of the model are errors."""

    model_config = ConfigDict(extra="forbid", defer_build=True)


def parse_query(url: URL, model: type[Model]) -> Model:
    """Return the query parameters; raises a ProblemError (422) that names every invalid one."""
    if len(url.query) > MAX_PARAMETERS:
        few = {"path": "query", "detail": f"use at most {MAX_PARAMETERS} parameters"}
        raise invalid_request("query parameters", [few])
    errors = [
        {"path": name, "detail": "given more than once; send it once"}
        for name, times in Counter(name for name, _ in url.query.items()).items()
        if times > 1
    ]
    try:
        parsed = model.model_validate(dict(url.query))
    except ValidationError as error:
        errors += list_field_errors(error, model)
    if errors:
        raise invalid_request("query parameters", errors)
    return parsed


async def parse_body(request: web.Request, model: type[Model], *, required: bool = True) -> Model:
    """Return the body, or the model's defaults if there is none and none is required.

    Raises ProblemError (400, 411, 415, 422).
    """
    if not required and not request.can_read_body:
        return model()
    require_json(request)
    content = await read_body(request)
    try:
        return model.model_validate_json(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        if first["type"] == "json_invalid":
            raise INVALID_JSON.error(reason=first["ctx"]["error"]) from None
        raise invalid_request("body", list_field_errors(error, model)) from None


def validate(members: dict[str, Any], model: type[Model]) -> Model:
    """Return a model built from merged members; raises ProblemError (422) if they are invalid."""
    try:
        return model.model_validate(members)
    except ValidationError as error:
        raise invalid_request("body", list_field_errors(error, model)) from None


def require_json(request: web.Request) -> None:
    """Raise ProblemError (411, 415) unless the request declares a JSON body."""
    require_media_type(request, JSON_MEDIA_TYPE)


def require_media_type(request: web.Request, media_type: str) -> None:
    """Raise ProblemError (411, 415) unless the request declares a body of this type."""
    if not any(name in request.headers for name in _FRAMING):
        raise LENGTH_REQUIRED.error()
    if request.content_type != media_type:
        # RFC 9110 section 12.5.1: in a response, Accept names what the next request may contain.
        raise UNSUPPORTED_MEDIA_TYPE.error({"Accept": media_type}, media_type=media_type)


def require_encoding(request: web.Request) -> None:
    """Raise ProblemError (415) if the body has an encoding that the HTTP parser leaves as it is."""
    encoding = ",".join(request.headers.getall(hdrs.CONTENT_ENCODING, ()))
    if encoding.lower() not in _ENCODINGS:
        raise UNSUPPORTED_ENCODING.error()


async def read_body(request: web.Request) -> bytes:
    """Return the decoded body.

    Raises ProblemError: 408 if it takes too long to arrive, 415 if its encoding is not supported.
    """
    require_encoding(request)
    try:
        async with asyncio.timeout(BODY_TIMEOUT):
            return await request.read()
    except TimeoutError:
        raise BODY_TOO_SLOW.error() from None


JSON_MEDIA_TYPE = "application/json"
_ENCODINGS = frozenset({"", "identity", "gzip", "deflate"})
_FRAMING = (hdrs.CONTENT_LENGTH, hdrs.TRANSFER_ENCODING)


def invalid_request(where: str, errors: list[dict[str, str]]) -> ProblemError:
    """Return the error for these mistakes, each a `path` and a `detail`."""
    count = "1 error" if len(errors) == 1 else f"{len(errors)} errors"
    if len(errors) >= MAX_SHOWN_ERRORS:
        count += " or more"
    return INVALID_REQUEST.error(count=count, where=where, errors=errors)


def invalid_member(path: str, detail: str) -> ProblemError:
    """Return the error for one mistake in the body."""
    return invalid_request("body", [{"path": path, "detail": detail}])


def list_field_errors(error: ValidationError, model: type[BaseModel]) -> list[dict[str, str]]:
    """Return the first mistakes, each a `path` and a `detail`."""
    return [
        {"path": ".".join(mistake.path), "detail": mistake.words}
        for mistake in islice(explain_errors(error, model), MAX_SHOWN_ERRORS)
    ]
