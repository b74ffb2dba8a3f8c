"""HTTP tracker base class, and readers of its responses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from hashlib import sha256
from http import HTTPStatus
from typing import Any, ClassVar

from tocsin import ApiResponse, Broken, Json, Misconfigured, Refused, Tracker, TryLater

_CONFIGURATION_ERRORS = (
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.NOT_FOUND,
    HTTPStatus.CONFLICT,
    HTTPStatus.GONE,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.UNPROCESSABLE_ENTITY,
)


class HttpTracker(Tracker):
    """A tracker of which every refusal is the error that says who has to do something.

    What it does not take waits for the operator: projects, fields and labels are for them to mend.
    What somebody else has changed meanwhile passes by itself.
    """

    conflicts: ClassVar[Collection[int]] = (HTTPStatus.CONFLICT, HTTPStatus.PRECONDITION_FAILED)
    """The statuses that say that what is to be changed is another by now."""

    async def ask(self, method: str, path: str, **options: Any) -> Json:
        """Return the body of what the tracker answers."""
        return (await self.answer(method, path, **options)).json

    async def answer(self, method: str, path: str, **options: Any) -> ApiResponse:
        """Return what the tracker answers.

        Raises `TryLater` with its status for a conflict, `Misconfigured` for what is not taken or
        not there, and beside those what `Api.request` raises.
        """
        try:
            return await self.request(method, path, **options)
        except Misconfigured:
            raise
        except Refused as refused:
            raise self._explained(refused) from refused

    def _explained(self, refused: Refused) -> Exception:
        words, status, response = str(refused), refused.status, refused.response
        if status in self.conflicts:
            words = f"it was changed meanwhile: {words}"
            return TryLater(words, partly=True, status=status, response=response)
        kind = Misconfigured if status in _CONFIGURATION_ERRORS else Refused
        return kind(words, status=status, response=response)


async def retry_on_conflict(change: Callable[[], Awaitable[None]]) -> None:
    """Make a change that reads first what it changes; once more if it was changed in between."""
    try:
        await change()
    except TryLater as conflict:
        if conflict.status not in HttpTracker.conflicts:
            raise
        await change()


def expect_object(answer: Json, *names: str) -> dict[str, Any]:
    """Return the object that stands at these names, one in another; `Broken` where none does."""
    found = answer
    for name in names:
        found = found.get(name) if isinstance(found, dict) else None
    if isinstance(found, dict):
        return found
    raise Broken(f"the tracker answered without {'/'.join(names) or 'an object'}")


def expect_objects(answer: Json, *names: str) -> list[dict[str, Any]]:
    """Return the objects of the list that stands there; `Broken` where none does."""
    found = expect_object(answer, *names[:-1]).get(names[-1]) if names else answer
    if isinstance(found, list):
        return [it for it in found if isinstance(it, dict)]
    raise Broken(f"the tracker answered without {'/'.join(names) or 'a list'}")


def expect_identifier(found: Json, name: str = "id") -> str:
    """Return the number that the tracker has given to something; `Broken` where it says none."""
    match expect_object(found).get(name):
        case int(number):
            return str(number)
        case str(number) if number.isascii() and number.isdigit():
            return number
    raise Broken(f"the tracker answered something without its {name}")


def hash_key(key: str) -> str:
    """Return a key as one word, which every search finds however it takes texts apart."""
    return f"tocsin{sha256(key.encode()).hexdigest()[:32]}"
