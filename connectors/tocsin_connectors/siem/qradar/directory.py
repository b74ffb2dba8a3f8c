"""What ids stand for: asked for in batches, and remembered for a while."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from tocsin import Clock
from tocsin_connectors.siem.qradar.console import Console
from tocsin_connectors.siem.records import number, text

_BATCH = 50
_MOST_KNOWN = 20_000
_UNKNOWN_FOR = timedelta(minutes=5)


class Directory:
    """The names of one kind of thing, by id."""

    def __init__(
        self, console: Console, clock: Clock, path: str, field: str, lasts: timedelta, **query: Any
    ) -> None:
        """Keep what is needed; do no I/O. A name at `field` of a record holds as long as it lasts.

        `query` is what the list is asked with beside ids.
        """
        self._console = console
        self._clock = clock
        self._path = path
        self._field = field
        self._lasts = lasts
        self._query = query
        self._known: dict[int, tuple[str | None, datetime]] = {}

    def name(self, identifier: int) -> str | None:
        """Return the name of an id, None where none was learnt."""
        return self._known.get(identifier, (None, None))[0]

    async def learn(self, identifiers: Iterable[int]) -> None:
        """Ask for the names that are not known, or were learnt too long ago.

        Raises what `Console.part` raises; what was learnt until then stays.
        """
        wanted = [it for it in dict.fromkeys(identifiers) if not self._is_known(it)]
        for first in range(0, len(wanted), _BATCH):
            await self._ask(wanted[first : first + _BATCH])

    def pass_over(self, identifiers: Iterable[int]) -> None:
        """Ask for no names of these for a while."""
        until = self._clock.now() + _UNKNOWN_FOR
        self._keep({it: (self.name(it), until) for it in identifiers if not self._is_known(it)})

    def _is_known(self, identifier: int) -> bool:
        found = self._known.get(identifier)
        return found is not None and found[1] > self._clock.now()

    async def _ask(self, identifiers: list[int]) -> None:
        wanted = f"id in ({','.join(map(str, identifiers))})"
        query = {"filter": wanted, "fields": f"id,{self._field}", **self._query}
        count = len(identifiers)
        records = await self._console.all(self._path, count, count, **query)
        now = self._clock.now()
        found = {number(it, "id"): text(it, self._field) for it in records}
        names = ((it, found.get(it)) for it in identifiers)
        self._keep({it: (name, now + self._until(name)) for it, name in names})

    def _until(self, name: str | None) -> timedelta:
        return _UNKNOWN_FOR if name is None else self._lasts

    def _keep(self, learnt: dict[int, tuple[str | None, datetime]]) -> None:
        """Keep what was learnt last, and of what was learnt before only so much."""
        before = {it: name for it, name in self._known.items() if it not in learnt}
        kept = {**before, **learnt}
        self._known = dict(list(kept.items())[-_MOST_KNOWN:])
