"""Record of the product files whose code runs while a block is executed."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).parents[1]
_FOLDERS = tuple(f"{ROOT}/{name}/" for name in ("core", "connectors", "plugins", "templates"))


class CodePath:
    """The files in the order in which their code first ran, relative to the repository."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}
        self._recording = False

    def _profile(self, frame: FrameType, event: str, _: object) -> None:
        if not self._recording or event != "call":
            return
        code = frame.f_code
        if code.co_filename.startswith(_FOLDERS) and code.co_name != "<module>":
            name = code.co_filename.removeprefix(f"{ROOT}/")
            self.files.setdefault(name, code.co_qualname)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch this thread, and every thread that starts inside."""
        threading.setprofile(self._profile)
        sys.setprofile(self._profile)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record what runs inside."""
        self._recording = True
        try:
            yield
        finally:
            self._recording = False
