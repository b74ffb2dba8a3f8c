"""Figures of the security tests, by area: `make security`.

A total of all areas would say nothing: a thousand cases of one make up for none of another.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
AREAS: Mapping[str, tuple[str, ...]] = {
    "Authorization": ("tests/security/test_authorization.py", "tests/core/web/test_scopes.py"),
    "Forged credentials and malformed requests": ("tests/core/web/test_bad_input.py",),
    "Rate limits and lock-outs": ("tests/core/web/test_rate_limits.py",),
    "Forms and sessions of the console": (
        "tests/security/test_console_forms.py",
        "tests/core/web/console/test_signing_in.py",
    ),
    "Host names": ("tests/core/web/test_hosts.py",),
    "Server-side request forgery": (
        "tests/security/test_forged_requests.py",
        "tests/core/net/test_bypasses.py",
    ),
    "Conditions and templates": (
        "tests/security/test_sandbox.py",
        "tests/security/test_running_service.py",
        "tests/core/test_sandbox.py",
        "tests/core/delivery/test_rendering_bounds.py",
    ),
    "Pushes": ("tests/faults/test_senders.py", "tests/core/web/test_push.py"),
    "Terminal output": ("tests/security/test_terminal.py",),
    "Secrets of destinations": (
        "tests/security/test_kept_secrets.py",
        "tests/security/test_echoed_secrets.py",
        "tests/plugins/test_webhook_secrets.py",
    ),
    "Secrets in logs": ("tests/security/test_debug_log.py",),
    "Audit log": ("tests/core/audit/test_verification.py",),
}


class Figures:
    """Plugin of pytest that counts tests by outcome, and the cases that they record."""

    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()
        self.cases = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a test once: when it was run, or skipped or broken before."""
        if report.when == "call" or report.outcome != "passed":
            self.outcomes[report.outcome] += 1
        if report.when == "call":
            own = [int(str(value)) for name, value in report.user_properties if name == "cases"]
            self.cases += sum(own) or 1


def main() -> int:
    """Run every area, print its figures, and return 1 if a test failed."""
    width = max(map(len, AREAS))
    has_failed = False
    rows = []
    for area, files in AREAS.items():
        figures = Figures()
        paths = [str(ROOT / file) for file in files]
        status = pytest.main(["-q", "--no-header", "-p", "no:cacheprovider", *paths], [figures])
        has_failed = has_failed or status != 0
        counts = [figures.outcomes[name] for name in ("passed", "failed", "skipped")]
        numbers = (len(files), sum(counts), figures.cases, *counts[1:])
        rows.append(f"{area:{width}}" + "".join(f"{number:>9}" for number in numbers))
    heads = ("files", "tests", "cases", "failed", "skipped")
    sys.stdout.write(f"\n{'Area':{width}}" + "".join(f"{head:>9}" for head in heads) + "\n")
    sys.stdout.write("\n".join(rows) + "\n")
    return int(has_failed)


if __name__ == "__main__":
    sys.exit(main())
