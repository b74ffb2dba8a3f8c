"""What ids stand for: asked for in batches, and remembered for a while."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from tocsin import Clock
from tocsin_connectors.siem.qradar.console import QRadarClient
from tocsin_connectors.siem.records import number, text

_BATCH_SIZE = 50
_MAX_NAMES = 20_000
_RETRY_UNKNOWN_AFTER = timedelta(minutes=1)
"""Soon enough for an offense that is read again: what it names may be told later than it is."""
_SKIP_FOR = timedelta(minutes=5)


class NameDirectory:
    """The names of one kind of thing, by id."""

    def __init__(
        self,
        console: QRadarClient,
        clock: Clock,
        path: str,
        field: str,
        lasts: timedelta,
        **query: Any,
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

    def is_unnamed(self, identifier: int) -> bool:
        """Return whether the name of an id was asked for, and not told."""
        return identifier in self._known and self.name(identifier) is None

    async def learn(self, identifiers: Iterable[int]) -> bool:
        """Ask for the names that are not known, or were learnt too long ago.

        Returns whether there were any. Raises what `QRadarClient.part` raises; what was learnt
        until
        then stays, and none of what was asked for makes room for another.
        """
        asked = dict.fromkeys(identifiers)
        self._keep({it: self._known[it] for it in asked if it in self._known})
        wanted = [it for it in asked if not self._is_known(it)]
        for first in range(0, len(wanted), _BATCH_SIZE):
            await self._ask(wanted[first : first + _BATCH_SIZE])
        return bool(wanted)

    def pass_over(self, identifiers: Iterable[int]) -> None:
        """Ask for no names of these for a while."""
        until = self._clock.now() + _SKIP_FOR
        self._keep({it: (self.name(it), until) for it in identifiers if not self._is_known(it)})

    def _is_known(self, identifier: int) -> bool:
        found = self._known.get(identifier)
        return found is not None and found[1] > self._clock.now()

    async def _ask(self, identifiers: list[int]) -> None:
        wanted = f"id in ({','.join(map(str, identifiers))})"
        query = {"filter": wanted, "fields": f"id,{self._field}", **self._query}
        count, now = len(identifiers), self._clock.now()
        self._keep({it: (self.name(it), now) for it in identifiers})
        records = await self._console.all(self._path, count, count, **query)
        now = self._clock.now()
        found = {number(it, "id"): text(it, self._field) for it in records}
        names = ((it, found.get(it)) for it in identifiers)
        self._keep({it: (name, now + self._until(name)) for it, name in names})

    def _until(self, name: str | None) -> timedelta:
        return _RETRY_UNKNOWN_AFTER if name is None else self._lasts

    def _keep(self, learnt: Mapping[int, tuple[str | None, datetime]]) -> None:
        """Keep what was asked for last, and of what was asked for before only so much."""
        for identifier in learnt:
            self._known.pop(identifier, None)
        self._known.update(learnt)
        for identifier in list(islice(self._known, max(0, len(self._known) - _MAX_NAMES))):
            del self._known[identifier]
