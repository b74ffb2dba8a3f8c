"""File that is reloaded when it changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from tocsin import Misconfigured, Tools

T = TypeVar("T")
MOST_BYTES = 64 * 1024 * 1024


class WatchedFile(Generic[T]):
    """Parsed contents of a file; if a new version cannot be read, the previous one stays in use."""

    def __init__(self, path: str, read: Callable[[bytes], T], tools: Tools) -> None:
        self._path = Path(path)
        self._read = read
        self._tools = tools
        self._version: tuple[int, int, int] | None = None
        self._content: T | None = None
        self._reading = asyncio.Lock()

    @property
    def current(self) -> T | None:
        """The contents as last read; None before."""
        return self._content

    async def content(self) -> T:
        """Return the contents; Misconfigured if no version could be read yet."""
        async with self._reading:
            try:
                await self._refresh()
            except (OSError, ValueError) as error:
                reason = f"{self._path}: {getattr(error, 'strerror', None) or error}"
                if self._content is None:
                    raise Misconfigured(reason) from None
                self._tools.log.warning(
                    "file not readable; using the previous version", reason=reason
                )
        assert self._content is not None  # noqa: S101 - or it was raised above
        return self._content

    async def _refresh(self) -> None:
        status = await asyncio.to_thread(self._path.stat)
        version = status.st_mtime_ns, status.st_size, status.st_ino
        if version == self._version:
            return
        if status.st_size > MOST_BYTES:
            raise ValueError(f"larger than {MOST_BYTES:,} bytes")
        self._content = await asyncio.to_thread(lambda: self._read(self._path.read_bytes()))
        self._version = version
