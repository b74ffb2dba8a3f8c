"""Base class for trackers with an HTTP API, and functions that read responses."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from hashlib import sha256
from http import HTTPStatus
from typing import Any, ClassVar

from tocsin import (
    ApiResponse,
    Broken,
    Json,
    Misconfigured,
    Refused,
    RemoteStatus,
    Tracker,
    TryLater,
)

_CONFIGURATION_ERRORS = (
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.NOT_FOUND,
    HTTPStatus.CONFLICT,
    HTTPStatus.GONE,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.UNPROCESSABLE_ENTITY,
)


class HttpTracker(Tracker):
    """Base class for trackers with an HTTP API; it turns rejected requests into errors.

    Invalid projects, fields and labels raise `Misconfigured`, so that the delivery is on hold until
    an operator fixes them. Conflicts with concurrent changes are temporary.
    """

    conflicts: ClassVar[Collection[int]] = (HTTPStatus.CONFLICT, HTTPStatus.PRECONDITION_FAILED)
    """Statuses that mean a conflict with a concurrent change."""
    status_batch: ClassVar[int] = 20

    async def ask(self, method: str, path: str, **options: Any) -> Json:
        """Return the body of the tracker's response."""
        return (await self.answer(method, path, **options)).json

    async def answer(self, method: str, path: str, **options: Any) -> ApiResponse:
        """Return the tracker's response.

        Raises `TryLater` with the status for a conflict, `Misconfigured` for invalid or missing
        objects, and otherwise the errors of `Api.request`.
        """
        try:
            return await self.request(method, path, **options)
        except Misconfigured:
            raise
        except Refused as refused:
            raise self._to_error(refused) from refused

    async def read_statuses(self, identifiers: Sequence[str]) -> Mapping[str, RemoteStatus]:
        """Return the statuses of tickets, with one request for each."""
        found = {identifier: await self.read_status(identifier) for identifier in identifiers}
        return {identifier: status for identifier, status in found.items() if status is not None}

    @abstractmethod
    async def read_status(self, identifier: str) -> RemoteStatus | None:
        """Return a ticket's status; None if the ID is unknown."""

    async def is_open(self, identifier: str) -> bool | None:
        """Return whether a ticket is open."""
        found = await self.read_status(identifier)
        return None if found is None else found.is_open

    async def comment_once(self, identifier: str, text: str) -> None:
        """Comment on a ticket, unless a comment already has this text."""
        if not any(text in comment for comment in await self.list_notes(identifier)):
            await self.add_note(identifier, text)

    def _to_error(self, refused: Refused) -> Exception:
        message, status, response = str(refused), refused.status, refused.response
        if status in self.conflicts:
            message = f"someone else changed the ticket at the same time: {message}"
            return TryLater(message, partly=True, status=status, response=response)
        kind = Misconfigured if status in _CONFIGURATION_ERRORS else Refused
        return kind(message, status=status, response=response)


async def retry_on_conflict(change: Callable[[], Awaitable[None]]) -> None:
    """Apply a change that reads before it writes; repeat it once after a conflict."""
    try:
        await change()
    except TryLater as conflict:
        if conflict.status not in HttpTracker.conflicts:
            raise
        await change()


def expect_text(found: Mapping[str, Any], name: str) -> str:
    """Return a text from the tracker's response; raises `Broken` if it is missing."""
    text = found.get(name)
    if isinstance(text, str) and text:
        return text
    raise Broken(f"the tracker's response lacks {name}")


def optional_text(value: Json) -> str | None:
    """Return a text; None if the value is empty or not a text."""
    return value if isinstance(value, str) and value else None


def expect_object(answer: Json, *names: str) -> dict[str, Any]:
    """Return the object at a path of names; raises `Broken` if it is missing."""
    found = answer
    for name in names:
        found = found.get(name) if isinstance(found, dict) else None
    if isinstance(found, dict):
        return found
    raise Broken(f"the tracker's response lacks {'/'.join(names) or 'an object'}")


def expect_objects(answer: Json, *names: str) -> list[dict[str, Any]]:
    """Return the objects in the list at a path of names; raises `Broken` if it is missing."""
    found = expect_object(answer, *names[:-1]).get(names[-1]) if names else answer
    if isinstance(found, list):
        return [item for item in found if isinstance(item, dict)]
    raise Broken(f"the tracker's response lacks {'/'.join(names) or 'a list'}")


def expect_identifier(found: Json, name: str = "id") -> str:
    """Return the number that the tracker gave an object; raises `Broken` if it is missing."""
    match expect_object(found).get(name):
        case int(number):
            return str(number)
        case str(number) if number.isascii() and number.isdigit():
            return number
    raise Broken(f"the tracker's response lacks {name}")


def hash_key(key: str) -> str:
    """Return a key as one word, which every search finds, however it splits text into words."""
    return f"tocsin{sha256(key.encode()).hexdigest()[:32]}"
