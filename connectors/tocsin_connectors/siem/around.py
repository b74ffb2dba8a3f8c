"""Listing around what breaks a list.

Whatever window of changes is read, all that began in days before is listed: so one record that
cannot be shown would break them all, and no smaller window would be without it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Protocol, Self, TypeVar

from tocsin import Broken, Tools

MAX_SKIPPED = timedelta(hours=1)
"""So much is passed over at most for one record that breaks the list."""
_SKIPPED_INTERVAL = "what became of an hour is not known, since it cannot be listed"


class SplittableCursor(Protocol):
    """What to ask next."""

    @property
    def span(self) -> timedelta:
        """How much time it asks for."""
        ...

    def halved(self) -> Self:
        """Return the step that asks for half of the time, from its beginning."""
        ...

    def passing_over(self) -> Self:
        """Return the step from which reading goes on behind what could not be listed."""
        ...


S = TypeVar("S", bound=SplittableCursor)
R = TypeVar("R")


async def isolate_broken_record(
    step: S,
    ask: Callable[[S], Awaitable[tuple[S, R]]],
    probe: Callable[[], Awaitable[R]],
    tools: Tools,
) -> tuple[S, R]:
    """Return what is asked, and the step that has brought it.

    Of a part that breaks, once that is not more than an hour, it is what `probe` returns: an answer
    without records. Raises `Broken` where that breaks as well, since then nothing can be listed.
    """
    try:
        return await ask(step)
    except Broken as error:
        reason = error
    nothing = await probe()
    while step.span > MAX_SKIPPED:
        step = step.halved()
        try:
            return await ask(step)
        except Broken as error:
            reason = error
    tools.log.warning(_SKIPPED_INTERVAL, what=str(step), why=str(reason))
    return step.passing_over(), nothing
