"""Every record is read exactly once, whatever happens to the files or interrupts reading."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import os
import shutil
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import TextIO

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from full_run import scale_examples
from tocsin import TryLater

FIRST = datetime(2026, 11, 20, 12, tzinfo=UTC)
PADDING = "x" * 700


class Sensor:
    """A writer, the rotation of its files, and a clock that moves with each step."""

    def __init__(self, folder: Path) -> None:
        self.live = folder / "eve.json"
        self.now = FIRST
        self.written: list[str] = []
        self._numbers: Iterator[int] = count()
        self._partial = ""
        self._file: TextIO = self.live.open("a")
        self._compressing: Path | None = None

    def close(self) -> None:
        self.finish_line()
        self.finish_compressing()
        self._file.close()

    def write_lines(self) -> None:
        self.finish_line()
        self._put(self._line() + self._line())

    def write_half_a_line(self) -> None:
        self.finish_line()
        line = self._line()
        middle = len(line) // 2
        self._put(line[:middle])
        self._partial = line[middle:]

    def finish_line(self) -> None:
        self._put(self._partial)
        self._partial = ""

    def rename(self) -> None:
        """Rotate; the writer goes on writing to the renamed file."""
        if self.live.exists():
            self._shift()
            self.live.rename(self._sibling(1))

    def reopen(self) -> None:
        if not self.live.exists():
            self.finish_line()
            self._file.close()
            self._file = self.live.open("a")

    def copy_and_truncate(self) -> None:
        self.copy()
        self.truncate()

    def truncate(self) -> None:
        if self.live.exists():
            os.truncate(self.live, 0)
            self._touch(self.live)

    def copy(self) -> None:
        if self.live.exists():
            self.finish_line()
            self._shift()
            shutil.copy(self.live, self._sibling(1))
            self._touch(self._sibling(1))

    def begin_compressing(self) -> None:
        self.finish_compressing()
        path = self._sibling(2)
        if path.exists() and not os.path.samestat(path.stat(), os.fstat(self._file.fileno())):
            self._compressing = path
            content = gzip.compress(path.read_bytes())
            self._compressed(path).write_bytes(content[: len(content) // 2])
            self._touch(self._compressed(path))

    def finish_compressing(self) -> None:
        if path := self._compressing:
            self._compressing = None
            self._compressed(path).write_bytes(gzip.compress(path.read_bytes()))
            modified = path.stat().st_mtime_ns
            os.utime(self._compressed(path), ns=(modified, modified))
            path.unlink()

    def _line(self) -> str:
        number = next(self._numbers)
        self.written.append(str(number))
        return f'{{"n":{number},"padding":"{PADDING * (number % 3)}"}}\n'

    def _put(self, text: str) -> None:
        self._file.write(text)
        self._file.flush()
        self._touch(self._file.fileno())

    def _touch(self, file: Path | int) -> None:
        self.now += timedelta(milliseconds=10)
        os.utime(file, (self.now.timestamp(), self.now.timestamp()))

    def _sibling(self, number: int) -> Path:
        return self.live.with_name(f"eve.json.{number}")

    def _compressed(self, path: Path) -> Path:
        return path.with_name(f"{path.name}.gz")

    def _shift(self) -> None:
        self.finish_compressing()
        for number in range(30, 0, -1):
            for path in (self._sibling(number), self._compressed(self._sibling(number))):
                if path.exists():
                    older = self._sibling(number + 1).name
                    path.rename(path.with_name(path.name.replace(f"eve.json.{number}", older)))


STEPS = (
    Sensor.write_lines,
    Sensor.write_half_a_line,
    Sensor.finish_line,
    Sensor.rename,
    Sensor.reopen,
    Sensor.copy_and_truncate,
    Sensor.copy,
    Sensor.begin_compressing,
    Sensor.finish_compressing,
)


@settings(
    max_examples=scale_examples(250),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@example(  # a finished file is not forgotten while its compressed copy is waited for
    course=[
        Sensor.write_lines,
        Sensor.copy_and_truncate,
        Sensor.copy,
        Sensor.write_lines,
        Sensor.begin_compressing,
        1,
        Sensor.copy_and_truncate,
        1,
    ]
)
@given(course=st.lists(st.sampled_from(STEPS) | st.sampled_from([1, 2, 1000]), max_size=25))
def test_every_record_is_read_exactly_once(course, make_feed, monkeypatch):
    monkeypatch.setattr("tocsin_connectors.siem.files.batch.MAX_RECORDS", 2)
    with tempfile.TemporaryDirectory() as folder:
        sensor = Sensor(Path(folder))
        feed = make_feed(sensor.live)
        asyncio.run(follow(sensor, feed, course))
        assert sorted(map(int, feed.ids)) == sorted(map(int, sensor.written))
        assert (feed.lost, feed.rejected) == ([], [])


async def follow(sensor, feed, course):
    for step in course:
        if isinstance(step, int):
            await read(feed, sensor.now, most=step)
        else:
            step(sensor)
        if step is Sensor.copy:  # nothing is written before the truncation: that would be lost
            await read(feed, sensor.now, most=1)
            sensor.truncate()
    sensor.close()
    for minutes in (2, 4, 6):
        await read(feed, sensor.now + timedelta(minutes=minutes), most=1000)


async def read(feed, until, most):
    with contextlib.suppress(TryLater):  # between renaming and opening there is no live file
        await feed.read(at=until, most=most)
