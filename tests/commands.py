"""Running commands as an operator does, each in a process of its own, without waiting for imports.

A process that has imported Tocsin, and does nothing else, makes a copy of itself for each command:
what a command does stays its own, and it begins in a few milliseconds.
"""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import os
import sys
import traceback
import warnings
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tocsin.cli.commands import COMMANDS

_PLUGINS = ("tocsin.providers", "tocsin.plugins", "tocsin.trackers")


def _list_modules() -> Iterator[str]:
    """Yield what commands import, some of it only when they run."""
    yield from ("tocsin.cli", "tocsin.node", "tocsin.web")
    yield from sorted({f"tocsin.cli.{entry.module}" for entry in COMMANDS.values()})
    for group in _PLUGINS:
        yield from (point.module for point in entry_points(group=group))


_forks = multiprocessing.get_context("forkserver")
_forks.set_forkserver_preload([*_list_modules()])


class ForkedCommand:
    """A command that runs, with what tests use of `asyncio.subprocess.Process`."""

    def __init__(
        self,
        arguments: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        *,
        output: Path,
        errors: Path,
    ) -> None:
        asked = (list(arguments), folder, dict(environment), (output, errors))
        self._process = _forks.Process(target=_run, args=asked, daemon=True)
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        """The status with which it has ended."""
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    async def wait(self) -> int:
        """Return the status with which it ends."""
        return await asyncio.to_thread(self.join)

    def join(self) -> int:
        """Return the status with which it ends."""
        self._process.join()
        assert self._process.exitcode is not None
        return self._process.exitcode


def run(
    arguments: Sequence[str], folder: Path, environment: Mapping[str, str]
) -> tuple[int, str, str]:
    """Return status, output and errors of a command."""
    with TemporaryDirectory() as files:
        output, errors = Path(files) / "output", Path(files) / "errors"
        command = ForkedCommand(arguments, folder, environment, output=output, errors=errors)
        return command.join(), output.read_text(), errors.read_text()


def _run(
    arguments: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    files: Sequence[Path],
) -> None:
    """Run a command in this process, with files as its output and its errors."""
    gc.freeze()  # a collection would write to all memory that is shared
    warnings.simplefilter("error")
    os.chdir(folder)
    sys.path.insert(0, str(folder))  # as `python -m` does
    os.environ.clear()
    os.environ.update(environment)
    for number, path in enumerate(files, 1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.argv = ["tocsin", *arguments]
    status: Any = 0
    from tocsin.cli import main

    try:
        main()
    except SystemExit as end:
        status = end.code or 0
    except BaseException:  # noqa: BLE001 - as the interpreter does
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    sys.exit(int(status))
