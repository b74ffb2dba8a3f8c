"""Shared responses of the OpenAPI document, each defined once and referenced by its name."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from tocsin.web.context import AccessRole, Endpoint
from tocsin.web.openapi.headers import response_headers
from tocsin.web.openapi.problems import Problem, list_problems
from tocsin.web.openapi.schemas import reference
from tocsin.web.problems import CONTENT_TYPE, OAuthErrorDocument, OAuthProblem, ProblemDocument

Group = tuple[int, tuple[Problem, ...], tuple[str, ...]]
"""A status, the problems that have it, and the names of the header fields."""


class ErrorResponses:
    """The error responses of all endpoints, by the name of their component."""

    def __init__(self, endpoints: Sequence[Endpoint]) -> None:
        users: dict[tuple[Any, ...], list[tuple[Endpoint, Group]]] = defaultdict(list)
        for endpoint in endpoints:
            for group in _group_problems(endpoint):
                users[_key(group)].append((endpoint, group))
        self._names: dict[tuple[Any, ...], str] = {}
        self._groups: dict[str, Group] = {}
        for key, used in users.items():
            group = used[0][1]
            endpoint = used[0][0]
            candidates = _name_candidates(group, endpoint, is_shared=len(used) > 1)
            name = next(name for name in candidates if name not in self._groups)
            self._names[key] = name
            self._groups[name] = group

    def refer(self, endpoint: Endpoint) -> dict[int, dict[str, str]]:
        """Return the references to the error responses of an endpoint, by their status."""
        return {
            group[0]: {"$ref": f"#/components/responses/{self._names[_key(group)]}"}
            for group in _group_problems(endpoint)
        }

    def describe(self) -> dict[str, Any]:
        """Return `components/responses`."""
        return {name: _describe(self._groups[name]) for name in sorted(self._groups)}

    def describe_examples(self) -> dict[str, Any]:
        """Return `components/examples`."""
        problems = (problem for _, group, _ in self._groups.values() for problem in group)
        examples = {_example_name(problem): problem for problem in problems}
        return {
            name: {
                "summary": HTTPStatus(examples[name].status).phrase,
                "value": examples[name].build_example(),
            }
            for name in sorted(examples)
        }


def _group_problems(endpoint: Endpoint) -> Iterator[Group]:
    by_status: dict[int, list[Problem]] = defaultdict(list)
    for problem in list_problems(endpoint):
        by_status[problem.status].append(problem)
    for status, problems in by_status.items():
        headers = response_headers(endpoint, status, is_error=True)
        yield status, tuple(problems), tuple(headers)


def _key(group: Group) -> tuple[Any, ...]:
    status, problems, headers = group
    return status, frozenset(map(_example_name, problems)), frozenset(headers)


def _name_candidates(group: Group, endpoint: Endpoint, *, is_shared: bool) -> Iterator[str]:
    """Yield the names for a response, best first."""
    status, problems, headers = group
    if isinstance(problems[0], OAuthProblem):
        name = f"OAuth{_camel_case(HTTPStatus(status).phrase)}"
    elif len(problems) == 1:
        name = _camel_case(problems[0].name)
    else:
        name = _camel_case(HTTPStatus(status).phrase)
    own = f"{_camel_case(endpoint.handler.__name__)}{_camel_case(HTTPStatus(status).phrase)}"
    if is_shared or len(problems) == 1:
        yield name
        if endpoint.access is AccessRole.PUBLIC:
            yield f"{name}Public"
        if endpoint.idempotent:
            yield f"{name}Idempotent"
        if endpoint.body is not None:
            yield f"{name}WithBody"
    yield own
    raise LookupError(f"no name for the response {status} of {endpoint.path}: {headers}")


def _camel_case(words: str) -> str:
    return "".join(word[:1].upper() + word[1:] for word in re.split(r"[\W_]+", words))


def _example_name(problem: Problem) -> str:
    if isinstance(problem, OAuthProblem):
        return f"oauth-{problem.status}-{problem.name.replace('_', '-')}"
    return problem.name


def _describe(group: Group) -> dict[str, Any]:
    status, problems, headers = group
    contents: dict[str, Any] = {}
    for problem in problems:
        is_oauth = isinstance(problem, OAuthProblem)
        media_type = "application/json" if is_oauth else CONTENT_TYPE
        model = OAuthErrorDocument if is_oauth else ProblemDocument
        content = contents.setdefault(media_type, {"schema": reference(model), "examples": {}})
        name = _example_name(problem)
        content["examples"][name] = {"$ref": f"#/components/examples/{name}"}
    return {
        "description": HTTPStatus(status).phrase,
        "headers": describe_headers(headers),
        "content": contents,
    }


def refer_not_modified(endpoint: Endpoint) -> dict[str, str]:
    """Return the reference to the response of a read whose content has not changed."""
    return {"$ref": f"#/components/responses/{_name_not_modified(endpoint)}"}


def describe_not_modified(endpoints: Iterable[Endpoint]) -> dict[str, Any]:
    """Return the responses that `refer_not_modified` refers to, by the name of their component."""
    reads = {_name_not_modified(each): each for each in endpoints if each.method == "GET"}
    return {name: describe_response(reads[name], HTTPStatus.NOT_MODIFIED) for name in sorted(reads)}


def _name_not_modified(endpoint: Endpoint) -> str:
    is_public = endpoint.access is AccessRole.PUBLIC
    return f"NotModified{'Public' * is_public}{'Replica' * endpoint.may_lag}"


def describe_response(endpoint: Endpoint, status: int) -> dict[str, Any]:
    """Return the description and the header fields of a response that is not an error."""
    names = response_headers(endpoint, status, is_error=False)
    return {"description": HTTPStatus(status).phrase, "headers": describe_headers(names)}


def describe_headers(names: Sequence[str]) -> Mapping[str, Any]:
    """Return the references to these header fields."""
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}
