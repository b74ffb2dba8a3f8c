"""Pytest plugin of Tocsin, which reports broken rules in plain words.

It imports nothing of Tocsin, so that it costs nothing in other test suites.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from traceback import format_exception

import pytest


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
