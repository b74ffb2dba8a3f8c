"""Running commands as an operator does, each in a process of its own, without waiting for imports.

A process that has imported the command line, and does nothing else, makes a copy of itself for each
command: what a command does stays its own, and it begins in a few milliseconds.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import traceback
from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any


class Commands:
    """Runs commands until it is closed."""

    def __init__(self) -> None:
        command = [sys.executable, "-W", "error", __file__]
        self._server = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(
        self, arguments: Sequence[str], folder: Path, environment: Mapping[str, str]
    ) -> tuple[int, str, str]:
        """Return status, output and errors of a command."""
        files = [folder / f".{name}" for name in ("stdout", "stderr")]
        asked = {
            "arguments": list(arguments),
            "folder": str(folder),
            "environment": dict(environment),
            "files": [str(file) for file in files],
        }
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        print(json.dumps(asked), file=self._server.stdin, flush=True)
        status = int(self._server.stdout.readline())
        out, errors = (file.read_text() for file in files)
        for file in files:
            file.unlink()
        return status, out, errors

    def close(self) -> None:
        """End the process that waits for commands."""
        self._server.communicate()


def serve() -> None:
    """Run the commands that are asked for on standard input, one after the other."""
    from tocsin.cli import main
    from tocsin.cli.commands import CommandModules

    list(CommandModules().values())  # imports them
    _import_what_commands_import()
    for line in sys.stdin:
        asked = json.loads(line)
        child = os.fork()
        if child == 0:
            os._exit(_run(main, asked))
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


def _import_what_commands_import() -> None:
    """Import what commands import when they run, once for all of them."""
    import tocsin.node
    import tocsin.web  # noqa: F401

    for group in ("tocsin.providers", "tocsin.plugins", "tocsin.trackers"):
        for point in entry_points(group=group):
            point.load()
    gc.collect()
    gc.freeze()  # a collection in a copy would write to all memory that it shares


def _run(main: Any, asked: dict[str, Any]) -> int:
    os.chdir(asked["folder"])
    sys.path.insert(0, asked["folder"])  # as `python -m` does
    os.environ.clear()
    os.environ.update(asked["environment"])
    for number, path in enumerate(asked["files"], 1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.argv = ["tocsin", *asked["arguments"]]
    status: Any = 0
    try:
        main()
    except SystemExit as end:
        status = end.code or 0
    except BaseException:  # noqa: BLE001 - as the interpreter does
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return int(status)


if __name__ == "__main__":
    serve()
