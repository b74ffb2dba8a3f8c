"""Tombstones of erased values outside the database, for restores of backups that are older."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import NoReturn

import orjson

from tocsin.clock import Clock
from tocsin.loops import run_forever
from tocsin.store import Database, Erasure, load_erasures, make_private_folder

_INTERVAL = timedelta(minutes=1)


class TombstoneFile:
    """The file `erasures.jsonl` in the data directory: keyed digests, without the values."""

    def __init__(self, data_dir: Path) -> None:
        self._path = data_dir / "erasures.jsonl"

    def load(self) -> dict[str, Erasure]:
        """Return the tombstones by digest."""
        try:
            lines = self._path.read_bytes().splitlines()
        except FileNotFoundError:
            return {}
        found = (Erasure(**orjson.loads(line)) for line in lines)
        return {erasure.digest: erasure for erasure in found}

    def add(self, erased: Iterable[Erasure]) -> None:
        """Add tombstones that the file has not; it is replaced at once."""
        known = self.load()
        added = [erasure for erasure in erased if erasure.digest not in known]
        if not added:
            return
        make_private_folder(self._path.parent)  # with PostgreSQL, there may be none yet
        draft = self._path.with_name(f"{self._path.name}.new")
        draft.touch(mode=0o600)
        with draft.open("wb") as file:
            for erasure in (*known.values(), *added):
                file.write(orjson.dumps(asdict(erasure), option=orjson.OPT_APPEND_NEWLINE))
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self._path)


async def follow_erasures(database: Database, clock: Clock, file: TombstoneFile) -> NoReturn:
    """Store what was erased on other nodes in the file of this one, until cancelled."""

    async def step() -> None:
        await asyncio.to_thread(file.add, await database.read(load_erasures))

    await run_forever(step, clock, "erasures", pause=_INTERVAL)
