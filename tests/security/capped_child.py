"""A child process that evaluates texts of operators under caps of memory and processor time.

The caps are the system's, so code that does not ask for permission is caught as well: beyond
`MEMORY` an allocation fails, and beyond `SECONDS` the process is killed.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

MEMORY = 50_000_000
SECONDS = 1.0
ENTITIES = [{"kind": "ip", "value": f"10.0.0.{n}", "n": n} for n in range(100)]
DATA = {
    "n": 7,
    "big": 2**63 - 1,
    "x": 0.5,
    "title": "Many failed VPN sign-ins\n",
    "long": "ab c\n<" * 5_000,
    "list": ["b", "A", 3, None, [1, [2]], {"a": 1}],
    "words": [f"v{number}" for number in range(2_000)],
    "entities": ENTITIES,
}
VARIABLES = {"event_type": "incident-alert", "subject": "incident:7", "data": DATA, "context": DATA}


class CappedChild:
    """Evaluates texts, and starts again after a case that broke a cap."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self.evaluated = 0

    def evaluate(self, kind: str, text: str) -> dict[str, Any]:
        """Return the `seconds` and `outcome` of a case; the outcome is "killed" if it was."""
        self.evaluated += 1
        process = self._process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps([kind, text]) + "\n")
        process.stdin.flush()
        if line := process.stdout.readline():
            return json.loads(line)
        self.close()
        return {"seconds": SECONDS, "outcome": "killed"}

    def _start(self) -> subprocess.Popen[str]:
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # Python warns of odd constants in templates
            text=True,
            encoding="utf-8",
        )
        return self._process

    def close(self) -> None:
        """End the child."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def evaluate_expression(text: str) -> None:
    """Do what routing does with a condition, and a ticket with a field."""
    from tocsin.conditions import Condition, Expression

    Condition(text).holds(VARIABLES)
    Expression(text).value(VARIABLES)


def render_template(text: str) -> None:
    """Render a template of an operator."""
    from datetime import UTC, datetime

    from tocsin import Event, EventType
    from tocsin.delivery.rendering import Renderer

    event = Event(
        id="evt_1",
        event_type=EventType.INCIDENT_ALERT,
        timestamp=datetime(2026, 11, 21, tzinfo=UTC),
        subject="incident:7",
        data=DATA,
    )
    with TemporaryDirectory() as folder:
        (Path(folder) / "mine").mkdir()
        (Path(folder) / "mine" / "incident-alert.txt.j2").write_text(text)
        Renderer([Path(folder)]).render("mine", event, "text")


EVALUATORS = {"expression": evaluate_expression, "template": render_template}


def _allow_memory() -> None:
    # beyond what it has now, so that what earlier cases left does not count
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    allowed = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (allowed, resource.RLIM_INFINITY))


def _allow_seconds() -> None:
    # counted from the start of the process, in whole seconds
    used = sum(os.times()[:2])
    resource.setrlimit(resource.RLIMIT_CPU, (int(used + 2 * SECONDS) + 1, resource.RLIM_INFINITY))


def _find_memory_error(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, MemoryError):
            return True
        error = error.__cause__ or error.__context__
    return False


def main() -> None:
    """Evaluate one case per line, and answer each with one line."""
    for kind, evaluate in EVALUATORS.items():  # so that everything is imported before the cap
        with suppress(Exception):
            evaluate("data.n == 7" if kind == "expression" else "{{ event.data.n }}")
    for line in sys.stdin:
        kind, text = json.loads(line)
        _allow_memory()
        _allow_seconds()
        started, outcome = time.process_time(), "ended"
        try:
            EVALUATORS[kind](text)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is no broken cap
            outcome = "memory" if _find_memory_error(error) else f"raised: {error}"
        seconds = time.process_time() - started
        sys.stdout.write(json.dumps({"seconds": seconds, "outcome": outcome}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
