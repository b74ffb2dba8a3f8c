"""Figures of the security tests, by area: `make security`, or for one area alone:

    .venv/bin/python tests/security/figures.py "Host names"

A total of all areas would say nothing: a thousand cases of one make up for none of another.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

import pytest

ROOT = Path(__file__).parents[2]
AREAS: Mapping[str, tuple[str, ...]] = {
    "Authorization": ("tests/security/test_authorization.py", "tests/core/web/test_scopes.py"),
    "Forged credentials and malformed requests": ("tests/core/web/test_bad_input.py",),
    "Connections": ("tests/core/web/test_connections.py",),
    "Rate limits and lock-outs": ("tests/core/web/test_rate_limits.py",),
    "Forms and sessions of the console": (
        "tests/security/test_console_forms.py",
        "tests/core/web/console/test_signing_in.py",
    ),
    "OpenID Connect": (
        "tests/core/credentials/test_oidc.py",
        "tests/core/credentials/test_oidc_attempts.py",
        "tests/core/web/console/test_oidc_sign_in.py",
        "tests/core/web/console/test_session_checks.py",
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
    "Pushes": (
        "tests/faults/test_senders.py",
        "tests/core/web/test_push.py",
        "tests/security/test_push_memory.py",
    ),
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
        self.counts: Counter[str] = Counter()
        self._called: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a test once: when it was run, or skipped or broken before."""
        if report.when == "call" or report.outcome != "passed":
            self.counts[report.outcome] += 1
        if report.when == "call":
            self._called.add(report.nodeid)
        if report.when == "teardown" and report.nodeid in self._called:
            own = [int(str(value)) for name, value in report.user_properties if name == "cases"]
            self.counts["cases"] += sum(own) or 1


def run_area(area: str, result: Path) -> int:
    """Run the files of an area, and write its figures to `result`; return the status of pytest."""
    figures = Figures()
    paths = [str(ROOT / file) for file in AREAS[area]]
    status = pytest.main(["-q", "--no-header", "-p", "no:cacheprovider", *paths], [figures])
    result.write_text(json.dumps(figures.counts))
    return int(status)


def main(names: Sequence[str]) -> int:
    """Run the areas with these names, or all, print their figures, and return 1 if a test failed.

    Each area has a process of its own: what one configures, such as a log, changes no other.
    """
    if unknown := set(names) - set(AREAS):
        sys.exit(f"no area {', '.join(sorted(unknown))}; use one of: {', '.join(AREAS)}")
    width = max(map(len, AREAS))
    has_failed = False
    rows = []
    for area in names or AREAS:
        with TemporaryDirectory() as folder:
            result = Path(folder) / "figures.json"
            command = [sys.executable, __file__, "--area", area, str(result)]
            begun = monotonic()
            status = subprocess.run(command, check=False).returncode
            counts = json.loads(result.read_text()) if result.exists() else {}
        has_failed = has_failed or status != 0
        outcomes = [counts.get(name, 0) for name in ("passed", "failed", "skipped")]
        seconds = round(monotonic() - begun)
        numbers = (len(AREAS[area]), sum(outcomes), counts.get("cases", 0), *outcomes[1:], seconds)
        rows.append(f"{area:{width}}" + "".join(f"{number:>9}" for number in numbers))
    heads = ("files", "tests", "cases", "failed", "skipped", "seconds")
    sys.stdout.write(f"\n{'Area':{width}}" + "".join(f"{head:>9}" for head in heads) + "\n")
    sys.stdout.write("\n".join(rows) + "\n")
    return int(has_failed)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--area"]:
        sys.exit(run_area(sys.argv[2], Path(sys.argv[3])))
    sys.exit(main(sys.argv[1:]))
