"""Pytest plugin of Tocsin, which reports broken rules in plain words.

It imports nothing of Tocsin, so that it costs nothing in other test suites.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Generator
from traceback import format_exception
from typing import Any

import pytest

_RULES = "tocsin/testing/conformance/rules.py"
_MOST_REASONS = 20


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    call: pytest.CallInfo[None],
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Return the report; for a broken rule, with its text and the provider's exception."""
    report = yield
    rules = sys.modules.get("tocsin.testing.conformance.rules")
    error = call.excinfo.value if call.excinfo else None
    if rules is not None and isinstance(error, rules.RuleBroken):
        cause = format_exception(error.__cause__) if error.__cause__ else []
        report.longrepr = "\n".join([str(error), *([""] if cause else []), "".join(cause)]).strip()
    return report


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print how many rules were skipped, by reason: a skipped rule has checked nothing."""
    skipped = [
        report.longrepr[2].removeprefix("Skipped: ")
        for report in terminalreporter.stats.get("skipped", ())
        if isinstance(report.longrepr, tuple)
        and str(report.longrepr[0]).replace("\\", "/").endswith(_RULES)
    ]
    if not skipped:
        return
    reasons = Counter(skipped).most_common()
    terminalreporter.section(f"{len(skipped)} rules of conformance suites were skipped")
    for reason, count in reasons[:_MOST_REASONS]:
        terminalreporter.line(f"{count:>4}  {reason}")
    if len(reasons) > _MOST_REASONS:
        terminalreporter.line(f"      and {len(reasons) - _MOST_REASONS} other reasons; see `-rs`")
