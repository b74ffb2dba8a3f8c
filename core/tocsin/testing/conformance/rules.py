"""Rule decorator, and the expectations that rules use."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import NoReturn, TypeVar

import pytest

LONGEST = 30
"""How many seconds a rule may take, so that a provider that never ends is told from a slow one."""
_SHOWN = 500

S = TypeVar("S")


class RuleViolation(AssertionError):  # noqa: N818 - an observation
    """What was seen of a provider where a rule wants something else."""


class RuleBroken(AssertionError):  # noqa: N818 - a verdict
    """A rule, why there is one, and what was seen instead."""

    def __init__(self, words: str, seen: str) -> None:
        sentence, _, reason = words.partition("\n\n")
        lines = (("Rule", sentence), ("Why", reason), ("Seen", seen))
        super().__init__("\n".join(f"{name}: {_join_lines(text)}" for name, text in lines))


def expect(kept: object, seen: str) -> None:
    """Return where a rule is kept; `seen` says what was seen where it is not."""
    __tracebackhide__ = True
    if not kept:
        raise RuleViolation(seen)


def expect_failure(error: BaseException | None, wanted: type[Exception]) -> None:
    """Return where a read failed as it should have."""
    __tracebackhide__ = True
    seen = f"{describe_error(error)}, where {wanted.__name__} was to be raised"
    expect(isinstance(error, wanted), seen)


async def catch_failure(doing: Awaitable[object]) -> Exception | None:
    """Return what is raised, None if it goes well; what a rule has seen is raised on."""
    try:
        await doing
    except RuleViolation:
        raise
    except Exception as error:  # noqa: BLE001 - which one it is, is what the rules are about
        return error
    return None


def describe_error(error: BaseException | None) -> str:
    """Return what was raised, in words."""
    return "nothing was raised" if error is None else f"{type(error).__name__}: {error}"


def does_not_apply(reason: str) -> NoReturn:
    """Skip the rule, since it concerns what the provider or its SIEM does not have."""
    pytest.skip(reason)


def exempt(reason: str) -> Callable[[object], None]:
    """Return what stands in for a rule that a provider need not keep; it is skipped, and says why.

    ::

        test_an_incident_keeps_its_id = exempt("its incidents have one version only")
    """

    def skipped(_: object) -> None:
        pytest.skip(reason)

    return skipped


def rule(test: Callable[[S], Awaitable[None]]) -> Callable[[S], None]:
    """Make a test of a coroutine function whose docstring is a rule and, in a paragraph, its why.

    The test needs no plugin of pytest and no event loop that runs.
    """
    words = inspect.getdoc(test) or ""

    def run(suite: S) -> None:
        __tracebackhide__ = True
        try:
            asyncio.run(_within_time(test(suite)))
        except RuleViolation as seen:
            raise RuleBroken(words, str(seen)) from seen.__cause__
        except Exception as error:
            raise RuleBroken(words, describe_error(error)) from error

    run.__name__, run.__qualname__ = test.__name__, test.__qualname__
    run.__doc__, run.__module__ = test.__doc__, test.__module__
    return run


async def _within_time(test: Awaitable[None]) -> None:
    try:
        async with asyncio.timeout(LONGEST) as limit:
            await test
    except TimeoutError:
        if not limit.expired():
            raise
        raise RuleViolation(f"it did not come to an end within {LONGEST} seconds") from None


def _join_lines(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else line[:_SHOWN] + "..."
