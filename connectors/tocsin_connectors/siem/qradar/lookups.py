"""Lookups of the IDs in offenses: addresses, rules, offense types and closing reasons.

Offenses are usually read in pages, so the IDs of a whole page are looked up in batches, and the
names are cached.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from http import HTTPStatus
from itertools import chain, islice
from typing import Any

from tocsin import Broken, Clock, Misconfigured, Refused, Tools, TryLater
from tocsin_connectors.siem.qradar.client import QRadarClient
from tocsin_connectors.siem.qradar.values import KNOWN_TYPES
from tocsin_connectors.siem.records import children, number, text

_BATCH_SIZE = 50
_MAX_NAMES = 20_000
_RETRY_UNKNOWN_AFTER = timedelta(minutes=1)
"""Short, because a name may appear later than the offense that refers to it."""
_SKIP_FOR = timedelta(minutes=5)


class NameDirectory:
    """Names of one kind of object, by ID."""

    def __init__(
        self,
        console: QRadarClient,
        clock: Clock,
        path: str,
        field: str,
        lasts: timedelta,
        **query: Any,
    ) -> None:
        """Store the dependencies. Performs no I/O.

        `field` holds the name, which is cached for `lasts`. `query` has further parameters of the
        list.
        """
        self._console = console
        self._clock = clock
        self._path = path
        self._field = field
        self._lasts = lasts
        self._query = query
        self._known: dict[int, tuple[str | None, datetime]] = {}

    def name(self, identifier: int) -> str | None:
        """Return the name of an ID, or None if it is not known."""
        return self._known.get(identifier, (None, None))[0]

    def is_unnamed(self, identifier: int) -> bool:
        """Return whether the name of an ID was requested and not returned."""
        return identifier in self._known and self.name(identifier) is None

    async def learn(self, identifiers: Iterable[int]) -> bool:
        """Request the names that are not cached or have expired.

        Returns whether there were any. Raises what `QRadarClient.part` raises; names received until
        then are kept, and requested names do not evict each other.
        """
        asked = dict.fromkeys(identifiers)
        self._cache({value: self._known[value] for value in asked if value in self._known})
        wanted = [identifier for identifier in asked if not self._is_known(identifier)]
        for first in range(0, len(wanted), _BATCH_SIZE):
            await self._ask(wanted[first : first + _BATCH_SIZE])
        return bool(wanted)

    def pass_over(self, identifiers: Iterable[int]) -> None:
        """Do not request the names of these IDs for a while."""
        until = self._clock.now() + _SKIP_FOR
        self._cache(
            {
                identifier: (self.name(identifier), until)
                for identifier in identifiers
                if not self._is_known(identifier)
            }
        )

    def _is_known(self, identifier: int) -> bool:
        found = self._known.get(identifier)
        return found is not None and found[1] > self._clock.now()

    async def _ask(self, identifiers: list[int]) -> None:
        wanted = f"id in ({','.join(map(str, identifiers))})"
        query = {"filter": wanted, "fields": f"id,{self._field}", **self._query}
        count, now = len(identifiers), self._clock.now()
        self._cache({identifier: (self.name(identifier), now) for identifier in identifiers})
        records = await self._console.all(self._path, count, count, **query)
        now = self._clock.now()
        found = {number(record, "id"): text(record, self._field) for record in records}
        names = ((identifier, found.get(identifier)) for identifier in identifiers)
        self._cache({item: (name, now + self._lifetime(name)) for item, name in names})

    def _lifetime(self, name: str | None) -> timedelta:
        return _RETRY_UNKNOWN_AFTER if name is None else self._lasts

    def _cache(self, learnt: Mapping[int, tuple[str | None, datetime]]) -> None:
        """Cache the latest requests, and evict the oldest names above the limit."""
        for identifier in learnt:
            self._known.pop(identifier, None)
        self._known.update(learnt)
        for identifier in list(islice(self._known, max(0, len(self._known) - _MAX_NAMES))):
            del self._known[identifier]


MAX_ADDRESSES = 200
"""Maximum number of addresses per kind and offense: a scan may have thousands."""
RULE_PATHS: Mapping[str, str] = {
    "CRE_RULE": "/analytics/rules",
    "ADE_RULE": "/analytics/ade_rules",
    "BUILDING_BLOCK_RULE": "/analytics/building_blocks",
}
"""Path of the names, by type of rule."""
_SOURCES, _DESTINATIONS = "source_address_ids", "local_destination_address_ids"
_TYPES, _REASONS = "offense_type", "closing_reason_id"
_PATIENCE = timedelta(minutes=5)
"""Time for which failing lookups are retried before offenses are stored without names."""
_LONG_CACHE, _SHORT_CACHE = timedelta(days=7), timedelta(hours=1)

IdsByKind = dict[str, list[int]]


class OffenseLookups:
    """Names that the offenses of one console refer to by ID."""

    def __init__(self, console: QRadarClient, tools: Tools) -> None:
        """Store the dependencies. Performs no I/O."""
        self._log = tools.log
        self._clock = tools.clock

        def directory(path: str, field: str, lasts: timedelta, **query: Any) -> NameDirectory:
            return NameDirectory(console, tools.clock, path, field, lasts, **query)

        reasons = {"include_reserved": "true", "include_deleted": "true"}
        self._directories = {
            _SOURCES: directory("/siem/source_addresses", "source_ip", _LONG_CACHE),
            _DESTINATIONS: directory(
                "/siem/local_destination_addresses", "local_destination_ip", _LONG_CACHE
            ),
            _TYPES: directory("/siem/offense_types", "name", _SHORT_CACHE),
            _REASONS: directory("/siem/offense_closing_reasons", "text", _SHORT_CACHE, **reasons),
            **{item: directory(path, "name", _SHORT_CACHE) for item, path in RULE_PATHS.items()},
        }
        self._expected: Sequence[IdsByKind] = ()
        self._broken_since: dict[str, datetime] = {}

    def expect(self, records: Sequence[dict[str, Any]]) -> None:
        """Announce a page of offenses that will be looked up one after the other."""
        self._expected = [_collect_ids(record) for record in records]

    async def learn(self, record: dict[str, Any]) -> None:
        """Request the unknown names of an offense and of the other offenses on its page.

        A failed lookup does not prevent others. Raises what `QRadarClient.part` raises, but
        `TryLater` if a lookup has failed only for a short time: an offense that is stored without
        names is seldom read again. Names that the console refuses are left out.
        """
        own, broken = _collect_ids(record), dict[str, Broken]()
        for kind in self._directories:
            try:
                if own[kind] and await self._learn(kind, own[kind]):
                    self._broken_since.pop(kind, None)
            except Broken as error:
                broken[kind] = error
        for kind, why in broken.items():
            if self._is_retrying(kind):
                raise TryLater(f"offense lookup failed: {why}") from why
        for why in broken.values():
            raise why

    def _is_retrying(self, kind: str) -> bool:
        """Return whether a lookup has failed only for a short time."""
        now = self._clock.now()
        return now - self._broken_since.setdefault(kind, now) < _PATIENCE

    async def _learn(self, kind: str, own: list[int]) -> bool:
        """Return whether a request was sent. Raises `Broken` if it failed."""
        directory = self._directories[kind]
        every = [*own, *chain.from_iterable(ids[kind] for ids in self._expected)]
        try:
            return await _learn_page_or_own(directory, own, every)
        except Refused as refused:
            forbidden = kind in RULE_PATHS and refused.status == HTTPStatus.FORBIDDEN
            if isinstance(refused, Misconfigured) and not forbidden:
                raise
            directory.pass_over(every if forbidden else own)
            self._log.warning("lookup refused", kind=kind, reason=str(refused))
            return True

    def lacks_addresses(self, record: dict[str, Any]) -> bool:
        """Return whether addresses of an offense were requested and not returned."""
        wanted = _collect_ids(record)
        return any(
            self._directories[kind].is_unnamed(item)
            for kind in (_SOURCES, _DESTINATIONS)
            for item in wanted[kind]
        )

    def addresses(self, record: dict[str, Any]) -> list[str]:
        """Return the known source and destination addresses of an offense."""
        return [*self.sources(record), *self.destinations(record)]

    def sources(self, record: dict[str, Any]) -> list[str]:
        """Return the known source addresses of an offense."""
        return self._names(record, _SOURCES)

    def destinations(self, record: dict[str, Any]) -> list[str]:
        """Return the known destination addresses of an offense."""
        return self._names(record, _DESTINATIONS)

    def _names(self, record: dict[str, Any], kind: str) -> list[str]:
        names = map(self._directories[kind].name, _collect_ids(record)[kind])
        return [name for name in names if name]

    def rule(self, record: dict[str, Any]) -> str | None:
        """Return the name of a rule that contributed to an offense."""
        directory = self._directories.get(text(record, "type") or "")
        identifier = number(record, "id")
        return directory.name(identifier) if directory and identifier is not None else None

    def offense_type(self, record: dict[str, Any]) -> str | None:
        """Return the name of the offense type."""
        identifier = number(record, _TYPES)
        if identifier is None:
            return None
        return self._directories[_TYPES].name(identifier) or KNOWN_TYPES.get(identifier)

    def closing_reason(self, record: dict[str, Any]) -> str | None:
        """Return the closing reason of an offense, or None if it is open or unknown."""
        identifier = number(record, _REASONS)
        return None if identifier is None else self._directories[_REASONS].name(identifier)


async def _learn_page_or_own(directory: NameDirectory, own: list[int], every: list[int]) -> bool:
    """Return whether a request was sent. IDs of other offenses must not make this one fail."""
    try:
        return await directory.learn(every)
    except Misconfigured:
        raise
    except (Broken, Refused):
        return await directory.learn(own)


def _collect_ids(record: dict[str, Any]) -> IdsByKind:
    """Return the IDs in an offense, by kind."""
    wanted: IdsByKind = {
        _SOURCES: _list_ids(record, _SOURCES)[:MAX_ADDRESSES],
        _DESTINATIONS: _list_ids(record, _DESTINATIONS)[:MAX_ADDRESSES],
        _TYPES: _list_ids(record, _TYPES),
        _REASONS: _list_ids(record, _REASONS),
        **{kind: [] for kind in RULE_PATHS},
    }
    for rule in children(record, "rules"):
        wanted.get(text(rule, "type") or "", []).extend(_list_ids(rule, "id"))
    return wanted


def has_more_addresses(record: dict[str, Any]) -> bool:
    """Return whether an offense has more addresses of a kind than the limit."""
    return any(len(_list_ids(record, item)) > MAX_ADDRESSES for item in (_SOURCES, _DESTINATIONS))


def _list_ids(record: dict[str, Any], name: str) -> list[int]:
    """Return the IDs at `name`, which holds one or a list of them."""
    value = record.get(name)
    values = value if isinstance(value, list) else [value]
    return [one for item in values if (one := number({"": item}, "")) is not None and one >= 0]
