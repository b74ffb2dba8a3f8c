"""Pages from a provider: their time limit, and the check of their types."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from datetime import timedelta
from types import FrameType
from typing import Any

import structlog

from tocsin.errors import TryLater
from tocsin.model import Covered, Page, Rejected
from tocsin.plugin_health import get_plugin_health
from tocsin.plugin_results import describe_method

SLOW_AFTER = timedelta(minutes=2)
"""The wait for a page after which a provider is degraded."""
PAGE_LIMIT = timedelta(minutes=10)
"""The wait for a page after which a read is given up."""
_DEFECT = "slow page"
_log = structlog.get_logger()


async def iterate_pages(
    method: Callable[..., AsyncGenerator[Page, None]], provider: str, *arguments: Any
) -> AsyncGenerator[Page, None]:
    """Yield the pages of a method of a provider; close this generator if you do not finish it.

    Raises TypeError if it yields something else, and TryLater if a page takes too long.
    """
    reading = method(*arguments)
    if not hasattr(reading, "__anext__"):
        raise TypeError(f"{describe_method(method)} returned {reading!r:.100}, not its pages")
    health, path = get_plugin_health(), f"providers.{provider}"

    def note_slow() -> None:
        reason = f"{_describe(method, reading)} has yielded no page for {_minutes(SLOW_AFTER)}"
        if health.mark(path, _DEFECT, reason):
            _log.warning("page overdue", provider=provider, reason=reason)

    async with aclosing(reading):
        while True:
            slow = asyncio.get_running_loop().call_later(SLOW_AFTER.total_seconds(), note_slow)
            try:
                async with asyncio.timeout(PAGE_LIMIT.total_seconds()) as limit:
                    page = await anext(reading)
            except StopAsyncIteration:
                health.clear(path, _DEFECT)
                return
            except TimeoutError:
                if limit.expired():
                    waited = f"yielded no page within {_minutes(PAGE_LIMIT)}"
                    raise TryLater(f"{describe_method(method)} {waited}") from None
                raise
            finally:
                slow.cancel()
            health.clear(path, _DEFECT)
            _require_page(page, lambda: _describe(method, reading))
            yield page


def _require_page(page: object, describe: Callable[[], str]) -> None:
    """Raise TypeError unless this is a page whose incidents can be looked at one by one."""
    if not isinstance(page, Page):
        raise TypeError(f"{describe()} yielded {page!r:.100}, not a `Page`")
    if not isinstance(page.next_position, Mapping):
        found = f"`next_position` {page.next_position!r:.100}, not a mapping"
        raise TypeError(f"{describe()} yielded a `Page` with {found}")
    kinds = {"incidents": object, "rejected": Rejected, "covered": Covered, "incomplete": str}
    for name, kind in kinds.items():
        values: object = getattr(page, name)
        if not isinstance(values, list | tuple) or not all(isinstance(v, kind) for v in values):
            items = "incidents" if kind is object else f"`{kind.__name__}`"
            found = f"`{name}` {values!r:.100}, not a tuple of {items}"
            raise TypeError(f"{describe()} yielded a `Page` with {found}")
    if not isinstance(page.records, int) or not isinstance(page.further_rejected, int):
        found = "`records` or `further_rejected` that is not an integer"
        raise TypeError(f"{describe()} yielded a `Page` with {found}")


def _describe(method: Callable[..., Any], reading: object) -> str:
    """Return the method with the line at which its generator is now."""
    frame: FrameType | None = getattr(reading, "ag_frame", None)
    if frame is None or frame.f_code is not getattr(method, "__code__", None):
        return describe_method(method)
    return describe_method(method, frame.f_lineno)


def _minutes(limit: timedelta) -> str:
    return f"{limit / timedelta(minutes=1):g} minutes"
