"""A log as a sensor writes it and logrotate leaves it: half lines, renamed, copied, compressed."""

from __future__ import annotations

import gzip
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import orjson

from tocsin import Clock

MOST_ROTATED = 5


class LogFile:
    """The live file at `path` and its rotated siblings; times are those of the clock."""

    def __init__(self, path: Path, clock: Clock, seed: int) -> None:
        self._path = path
        self._clock = clock
        self._random = Random(seed)
        self._rest = b""
        path.touch()
        self._stamp(path)

    def write(self, record: Mapping[str, Any]) -> None:
        """Append a record, at times with its second half to follow later."""
        line = self._rest + orjson.dumps(record) + b"\n"
        written = len(line) // 2 if self._random.random() < 0.1 else len(line)
        self._rest = line[written:]
        self._append(line[:written])

    def finish(self) -> None:
        """Complete the last line."""
        self._append(self._rest)
        self._rest = b""

    def rotate(self) -> None:
        """Move what was written aside, in one of the ways that logrotate knows."""
        self.finish()
        self._shift()
        if self._random.random() < 0.5:
            self._path.rename(self._sibling(1))
            self._path.touch()
        else:
            shutil.copy(self._path, self._sibling(1))
            self._stamp(self._sibling(1))
            os.truncate(self._path, 0)
        self._stamp(self._path)

    def _append(self, content: bytes) -> None:
        with self._path.open("ab") as file:
            file.write(content)
        self._stamp(self._path)

    def _shift(self) -> None:
        """Make room for another sibling; the second is compressed, the oldest goes."""
        self._compressed(MOST_ROTATED).unlink(missing_ok=True)
        for number in range(MOST_ROTATED - 1, 1, -1):
            if self._compressed(number).exists():
                self._compressed(number).rename(self._compressed(number + 1))
        if (first := self._sibling(1)).exists():
            self._compressed(2).write_bytes(gzip.compress(first.read_bytes()))
            times = first.stat()
            os.utime(self._compressed(2), ns=(times.st_mtime_ns, times.st_mtime_ns))
            first.unlink()

    def _stamp(self, path: Path) -> None:
        now = self._clock.now().timestamp()
        os.utime(path, (now, now))

    def _sibling(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")

    def _compressed(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}.gz")
