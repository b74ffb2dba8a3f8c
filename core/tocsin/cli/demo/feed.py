"""Simulated sensor that appends alerts to `eve.json` like Suricata."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Self

from tocsin.cli.demo.week import NOW, week

BACKLOG = 40  # alerts written when the demo starts
PAUSE = 0.4, 1.6  # seconds between two alerts
ROTATE_EVERY = 120  # lines
KEPT = 5  # rotated files

_ALERT = '"event_type":"alert","src_ip"'


class Feed(threading.Thread):
    """Writes one week after another, and continues after an earlier run."""

    def __init__(self, folder: Path, on_rotation: Callable[[Path], None]) -> None:
        super().__init__(name="feed", daemon=True)
        self.path = folder / "eve.json"
        self.path.touch()
        self._state = folder / "feed.json"
        self._on_rotation = on_rotation
        self._stopping = threading.Event()
        self._chance = Random()
        state = json.loads(self._state.read_text()) if self._state.exists() else {}
        self.week: int = state.get("week", 0)
        self.line: int = state.get("line", 0)
        self.alerts: int = state.get("alerts", 0)
        self._lines = week(self.week)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stopping.set()
        self.join()

    def run(self) -> None:
        """Write the backlog at once, then an alert every second or so."""
        begin = datetime.now(UTC)
        for age in range(BACKLOG, 0, -1):
            self._write_alert(begin - timedelta(seconds=5 * age))
        while not self._stopping.wait(self._chance.uniform(*PAUSE)):
            self._write_alert(datetime.now(UTC))

    def _write_alert(self, moment: datetime) -> None:
        """Write up to and including the next alert."""
        while True:
            line = self._next()
            stamp = moment.strftime("%Y-%m-%dT%H:%M:%S.%f+0000")
            with self.path.open("a", encoding="utf-8") as file:
                file.write(line.replace(NOW, stamp) + "\n")
            if self.line % ROTATE_EVERY == 0:
                self._rotate()
            if _ALERT in line:
                break
        self.alerts += 1
        self._remember()

    def _next(self) -> str:
        if self.line == len(self._lines):
            self.week, self.line = self.week + 1, 0
            self._lines = week(self.week)
        self.line += 1
        return self._lines[self.line - 1]

    def _remember(self) -> None:
        draft = self._state.with_suffix(".draft")
        draft.write_text(json.dumps({"week": self.week, "line": self.line, "alerts": self.alerts}))
        draft.replace(self._state)

    def _rotate(self) -> None:
        """Rotate files like logrotate: eve.json to eve.json.1, and so on."""
        names = [self.path, *(Path(f"{self.path}.{number}") for number in range(1, KEPT + 1))]
        for source, target in reversed([*pairwise(names)]):
            if source.exists():
                source.replace(target)
        self.path.touch()
        self._on_rotation(names[1])
