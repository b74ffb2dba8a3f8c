"""Interval splitting: shorter requests for intervals that a SIEM cannot list as a whole.

An interval is halved for one of two reasons: it contains more rows than the SIEM's pages can return
(`list_within_row_limit`), or it contains a record that makes every list fail
(`isolate_broken_record`). After the page for the first half, the cursor's `following` returns the
rest of the interval.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, Protocol, Self, TypeVar

from tocsin import Broken, Tools, Window

MAX_SKIPPED = timedelta(hours=1)
"""Longest interval that is skipped because of one record that breaks the list."""
_SKIPPED_INTERVAL = "Tocsin could not list the records in this interval, so changes may be missing"


class SplittableCursor(Protocol):
    """Cursor whose interval can be split."""

    @property
    def span(self) -> timedelta:
        """Length of the requested interval."""
        ...

    @property
    def passed_over(self) -> bool:
        """Whether a part of the interval could not be listed."""
        ...

    def encode(self) -> list[Any]:
        """Return the page token."""
        ...

    def halved(self) -> Self:
        """Return the cursor for the first half of the interval."""
        ...

    def skip_interval(self) -> Self:
        """Return the cursor after the interval that could not be listed."""
        ...


S = TypeVar("S", bound=SplittableCursor)
R = TypeVar("R")


def take_first_half(window: Window) -> Window:
    """Return the first half of a window."""
    return Window(window.start, window.start + (window.end - window.start) // 2)


async def list_within_row_limit(
    cursor: S, ask: Callable[[S], Awaitable[R]], is_too_large: Callable[[S, R], bool]
) -> tuple[S, R]:
    """Return the page of the largest initial part that is not too large, and its cursor."""
    page = await ask(cursor)
    while is_too_large(cursor, page):
        cursor = cursor.halved()
        page = await ask(cursor)
    return cursor, page


async def isolate_broken_record(
    cursor: S,
    ask: Callable[[S], Awaitable[tuple[S, R]]],
    probe: Callable[[], Awaitable[R]],
    tools: Tools,
) -> tuple[S, R]:
    """Return a page and the cursor that returned it, skipping a record that breaks the list.

    An interval that keeps failing is halved until it is no longer than `MAX_SKIPPED`; its page is
    then what `probe` returns, without records. Raises `Broken` if the probe fails, too, since then
    nothing can be listed.
    """
    try:
        return await ask(cursor)
    except Broken as error:
        reason = error
    nothing = await probe()
    while cursor.span > MAX_SKIPPED:
        cursor = cursor.halved()
        try:
            return await ask(cursor)
        except Broken as error:
            reason = error
    tools.log.warning(_SKIPPED_INTERVAL, interval=str(cursor), reason=str(reason))
    return cursor.skip_interval(), nothing
