"""Turns the query and the body of a request into the endpoint's models, or into a problem."""

from __future__ import annotations

from collections import Counter
from typing import TypeVar

from aiohttp import web
from pydantic import BaseModel, ConfigDict, ValidationError
from yarl import URL

from tocsin.errors import CallerError
from tocsin.validation import explain
from tocsin.web.problems import Kind, refusal

Model = TypeVar("Model", bound=BaseModel)


class Query(BaseModel):
    """The base of every endpoint's query parameters; by itself, none."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Body(BaseModel):
    """The base of every endpoint's JSON body."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


def parse_query(url: URL, model: type[Model]) -> Model:
    """Return the query parameters; CallerError (422) with every wrong one."""
    if not url.raw_query_string:
        return model()
    errors = [
        {"path": name, "detail": "given more than once; give it once"}
        for name, times in Counter(name for name, _ in url.query.items()).items()
        if times > 1
    ]
    try:
        parsed = model.model_validate(dict(url.query))
    except ValidationError as error:
        errors += _mistakes(error, model)
    if errors:
        raise _invalid("query parameters", errors)
    return parsed


async def parse_body(request: web.Request, model: type[Model]) -> Model:
    """Return the body; CallerError (400, 415, 422) where it is not what the endpoint takes."""
    if request.content_type != "application/json":
        raise CallerError(415, "Send the body as application/json.", headers=_ACCEPT)
    content = await request.read()
    try:
        return model.model_validate_json(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        if first["type"] == "json_invalid":
            raise CallerError(400, f"The body is not JSON: {first['ctx']['error']}.") from None
        raise _invalid("body", _mistakes(error, model)) from None


# RFC 9110 section 12.5.1: in an answer, Accept names what the next request may contain.
_ACCEPT = {"Accept": "application/json"}


def _invalid(where: str, errors: list[dict[str, str]]) -> CallerError:
    count = "1 mistake" if len(errors) == 1 else f"{len(errors)} mistakes"
    return refusal(Kind.INVALID_REQUEST, 422, f"{count} in the {where}.", errors=errors)


def _mistakes(error: ValidationError, model: type[BaseModel]) -> list[dict[str, str]]:
    return [
        {"path": ".".join(mistake.path), "detail": f"{mistake.found}; {mistake.expected}"}
        for mistake in explain(error, model)
    ]
