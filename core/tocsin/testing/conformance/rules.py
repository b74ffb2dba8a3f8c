"""Rule decorator, and the expectations that rules use."""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import Awaitable, Callable, Iterator
from traceback import walk_tb
from typing import NoReturn, TypeVar

import pytest

from tocsin.errors import PluginFailure
from tocsin.testing.conformance.loop_blocks import LoopBlocked, run_watched

LONGEST = 30
"""Time limit of a rule in seconds, which ends providers that never finish."""
OWN_SHAPE = ", when `refuse` responds"
"""Added to an observation that was made with the vendor's own shape of errors."""
_SHOWN = 500
_NO_BLOCKING = "test_the_event_loop_is_not_blocked"
"""The rule that every other rule checks too; with an exemption, none does."""
_PLUGINS = ("provider", "enricher", "channel", "intake")

S = TypeVar("S")


class RuleViolation(AssertionError):  # noqa: N818 - an observation
    """An observation of a provider that violates a rule."""


class RuleBroken(AssertionError):  # noqa: N818 - a verdict
    """A broken rule, with its reason and the observation."""

    def __init__(self, rule: str, seen: str) -> None:
        sentence, _, reason = rule.partition("\n\n")
        lines = (("Rule", sentence), ("Why", reason), ("Seen", seen))
        super().__init__("\n".join(f"{name}: {_join_lines(text)}" for name, text in lines))


def expect(kept: object, seen: str) -> None:
    """Return if a rule is kept; otherwise raise with `seen`, the observation."""
    __tracebackhide__ = True
    if not kept:
        raise RuleViolation(seen)


def expect_failure(error: BaseException | None, wanted: type[Exception], shape: str = "") -> None:
    """Return if a read failed with the expected error; `shape` ends the observation."""
    __tracebackhide__ = True
    seen = f"{describe_error(error)}, expected {wanted.__name__}{shape}"
    expect(isinstance(error, wanted), seen)


async def catch_failure(doing: Awaitable[object]) -> Exception | None:
    """Return the exception that an awaitable raises, None if it succeeds; rule violations
    propagate.
    """
    try:
        await doing
    except RuleViolation:
        raise
    except Exception as error:  # noqa: BLE001 - the rules examine it
        return error
    return None


def describe_error(error: BaseException | None) -> str:
    """Return an exception as text, with the plugin's line if it is a bug."""
    if error is None:
        return "nothing was raised"
    line = "" if isinstance(error, PluginFailure) else _find_line(error)
    return f"{type(error).__name__}: {error}{line and f' ({line})'}"


def does_not_apply(reason: str) -> NoReturn:
    """Skip the rule, because it covers something that the provider or its SIEM lacks."""
    pytest.skip(reason)


def exempt(reason: str) -> Callable[[object], None]:
    """Return a test that pytest skips with this reason, to replace a rule that does not apply.

    ::

        test_an_incident_keeps_its_id = exempt("incidents have one version only")
    """

    def skipped(_: object) -> None:
        pytest.skip(reason)

    return skipped


def rule(test: Callable[[S], Awaitable[None]]) -> Callable[[S], None]:
    """Make a test of a coroutine function whose docstring holds a rule and, in a paragraph, its
    reason.

    The test needs neither a pytest plugin nor a running event loop.
    """
    rule = inspect.getdoc(test) or ""

    def run(suite: S) -> None:
        __tracebackhide__ = True
        no_blocking = inspect.getdoc(getattr(suite, _NO_BLOCKING, None))
        doing = _within_time(test(suite))
        try:
            asyncio.run(run_watched(doing, _plugin(suite)) if no_blocking else doing)
        except LoopBlocked as block:
            raise RuleBroken(no_blocking or rule, str(block)) from None
        except RuleViolation as seen:
            raise RuleBroken(rule, str(seen)) from seen.__cause__
        except Exception as error:
            raise RuleBroken(rule, describe_error(error)) from error

    run.__name__, run.__qualname__ = test.__name__, test.__qualname__
    run.__doc__, run.__module__ = test.__doc__, test.__module__
    return run


def _find_line(error: BaseException) -> str:
    """Return the innermost line of the plugin, or of a handler, that an exception passed.

    The first package that Tocsin calls is the plugin's; what that calls may be a library's.
    """
    frames = [(frame, line) for frame, line in walk_tb(error.__traceback__)]
    packages = [str(frame.f_globals["__name__"]).partition(".")[0] for frame, _ in frames]
    own = (name for name in packages if name != "tocsin" and name not in sys.stdlib_module_names)
    if (first := next(own, None)) is None:
        return ""
    innermost = max(at for at, name in enumerate(packages) if name == first)
    frame, line = frames[innermost]
    code = frame.f_code
    return f'File "{code.co_filename}", line {line}, in {code.co_qualname}'


def _plugin(suite: object) -> type:
    """Return the class under test of any suite."""
    kinds: Iterator[type] = (getattr(suite, name) for name in _PLUGINS if hasattr(suite, name))
    return next(kinds)


async def _within_time(test: Awaitable[None]) -> None:
    try:
        async with asyncio.timeout(LONGEST) as limit:
            await test
    except TimeoutError:
        if not limit.expired():
            raise
        raise RuleViolation(f"it did not finish within {LONGEST} seconds") from None


def _join_lines(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else line[:_SHOWN] + "..."
