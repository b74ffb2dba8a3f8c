"""Objects, page tokens and records in vendors' responses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tocsin import Broken, Incident, Json


def expect_object(answer: Json, what: str) -> dict[str, Any]:
    """Return the answer if it is an object. Otherwise, raises `Broken` that names `what`."""
    if isinstance(answer, dict):
        return answer
    raise Broken(f"{what} did not return an object")


def expect_objects(answers: Iterable[Json], what: str) -> list[dict[str, Any]]:
    """Return the answers if all are objects. Otherwise, raises `Broken` that names `what`."""
    return [expect_object(answer, what) for answer in answers]


def get_page_token(record: Mapping[str, Any], member: str) -> str | None:
    """Return the page token in a member, unchanged, or None if there is none.

    Raises `Broken` for an invalid token, which would otherwise end the pages too early.
    """
    token = record.get(member)
    if token is None or isinstance(token, str):
        return token or None
    raise Broken(f"invalid page token in `{member}`: {token!r:.60}")


def build_from_answer(
    record: Mapping[str, Any] | None, build: Callable[[Mapping[str, Any]], Incident], request: str
) -> Incident | None:
    """Return the incident for a requested record, or None if there is no record.

    Raises `Broken` if the record is invalid.
    """
    if record is None:
        return None
    try:
        return build(record)
    except ValueError as error:
        raise Broken(f"{request} did not return a valid record: {error}") from None
