"""`tocsin serve --dev`: restarts the service when a plugin's files change."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tocsin.cli.output import print_text
from tocsin.file_stamps import stamp_file
from tocsin.registry import find_code, installed_plugins
from tocsin.settings import Settings

_POLL = 0.3
"""Seconds between two checks of the files. A restart requires one interval without a change."""
_NODE = (
    "from tocsin.cli import run; from tocsin.cli.serve import serve_node; "
    "run(lambda: serve_node(is_dev=True))"
)
_UNWATCHED = {"__pycache__", ".git", ".venv", "node_modules"}


class DevServer:
    """Runs the service in a separate process, and replaces the process after each change."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._is_stopping = False

    def run(self) -> int:
        """Run until this process gets a signal to stop, and return the service's exit status."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._stop)
        while True:
            places = self._list_places()
            stamps = _stamp_files(places)
            # A terminal signals the whole group: the service is stopped by this process alone
            node = subprocess.Popen([sys.executable, "-c", _NODE], start_new_session=True)  # noqa: S603 - its own interpreter and a constant
            changed = self._wait_for_change(places, stamps, node)
            node.terminate()
            status = node.wait()
            if self._is_stopping:
                return status
            print_text(f"{changed} changed; restarting", file=sys.stderr)

    def _stop(self, *_: object) -> None:
        self._is_stopping = True

    def _list_places(self) -> Sequence[Path]:
        """Return the watched files and folders, without importing a plugin."""
        code = {place for plugin in installed_plugins() for place in find_code(plugin)}
        places = (self._settings.plugins_file, self._settings.templates_dir, *code)
        return [place for place in places if place is not None]

    def _wait_for_change(
        self,
        places: Sequence[Path],
        stamps: Mapping[Path, object],
        node: subprocess.Popen[bytes],
    ) -> Path | None:
        """Return a changed file when all changes are complete; None after a signal to stop."""
        is_reported, last = False, stamps
        while not self._is_stopping:
            time.sleep(_POLL)
            if node.poll() is not None and not is_reported:
                print_text("the service stopped; waiting for a file to change", file=sys.stderr)
                is_reported = True
            found = _stamp_files(places)
            if found == last != stamps:
                return min(path for path, _ in found.items() ^ stamps.items())
            last = found
        return None


def _stamp_files(places: Sequence[Path]) -> Mapping[Path, object]:
    return {path: stamp_file(path) for place in places for path in _list_files(place)}


def _list_files(place: Path) -> Iterator[Path]:
    """Yield the files of a folder, or the file itself, which need not exist."""
    if not place.is_dir():
        yield place
        return
    for folder, subfolders, names in os.walk(place):
        subfolders[:] = [each for each in subfolders if each not in _UNWATCHED]
        yield from (Path(folder, name) for name in names)
