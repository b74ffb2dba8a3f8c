"""Authentication of API keys by their stored row, for reads that fetch it with their result."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import orjson
from sqlalchemy import ColumnElement, FromClause, Text, bindparam, cast, outerjoin, select

from tocsin.clock import Clock
from tocsin.credentials.api_keys import KEY_COLUMNS, ApiKey, KeyStatus, parse_key
from tocsin.credentials.digest_cache import DigestCache
from tocsin.credentials.hashing import Hasher
from tocsin.credentials.records import Principal, Usage
from tocsin.store import DriverQuery, load_stored
from tocsin.store.tables import api_keys

_COLUMNS: tuple[ColumnElement[Any], ...] = tuple(
    cast(column, Text).label("scopes") if column.name == "scopes" else column
    for column in KEY_COLUMNS
)
_HAS_KEY_ID = api_keys.c.key_id == bindparam("key_id")
FIND_KEY = DriverQuery(
    select(api_keys.c.row_version, *_COLUMNS).where(_HAS_KEY_ID), ("key_id",), is_lookup=True
)
"""The query for the row that `KeyRows.prove` takes."""


def join_key(
    columns: Iterable[ColumnElement[Any]],
    source: FromClause,
    condition: ColumnElement[bool],
    names: Sequence[str],
    *,
    is_lookup: bool = False,
) -> DriverQuery:
    """Return the query for the version of a caller's key and a matching row, if there is one.

    `names` are the parameters of the source and the condition; the key id comes before them. A
    lookup finds the matching row in next to no time.
    """
    joined = outerjoin(api_keys, source, condition)
    query = select(api_keys.c.row_version, *columns).select_from(joined).where(_HAS_KEY_ID)
    return DriverQuery(query, ("key_id", *names), is_lookup=is_lookup)


@dataclass(frozen=True, slots=True)
class ProvenRow:
    """A version of a stored row that a presented key was proven to belong to."""

    key_id: str
    version: int
    principal: Principal
    valid_until: datetime


class PresentedKey(NamedTuple):
    """An API key as a caller presents it, and what was proven of it before."""

    key_id: str
    text: str
    digest: bytes
    proven: ProvenRow | None


class KeyRows:
    """Authenticates callers by the rows of their keys.

    The version of the row is read for every request, so a key that is disabled, rotated or deleted
    ends with the next one on every node. Only the proof is remembered, as long as the version
    stays the same; triggers of the database renew it with every change.
    Keys that were not verified before are left to the `Authenticator`, like every refusal.
    """

    def __init__(self, hasher: Hasher, usage: Usage, clock: Clock) -> None:
        self._hasher = hasher
        self._usage = usage
        self._proven: DigestCache[ProvenRow] = DigestCache(clock)

    def present(self, text: str) -> PresentedKey | None:
        """Return the key to fetch the row of, None if the text is none; does no I/O."""
        digest = self._proven.digest("", text)
        proven = self._proven.recall(digest)
        if proven is not None:
            return PresentedKey(proven.key_id, text, digest, proven)
        value = parse_key(text)
        return None if value is None else PresentedKey(value.identifier, text, digest, None)

    def identify(self, key: PresentedKey, version: int, now: datetime) -> Principal | None:
        """Return the caller by the version of its key's row, None if that was not proven before."""
        proven = key.proven
        if proven is None or proven.version != version or now >= proven.valid_until:
            return None
        self._usage.record("key", proven.key_id)
        return proven.principal

    def prove(self, key: PresentedKey, row: Sequence[Any], now: datetime) -> Principal | None:
        """Return the caller by the row of FIND_KEY; None if the `Authenticator` has to decide."""
        proven = self._prove(key, row, now)
        if proven is None:
            return None
        return self.identify(key._replace(proven=proven), proven.version, now)

    def _prove(self, key: PresentedKey, row: Sequence[Any], now: datetime) -> ProvenRow | None:
        stored = load_stored(_COLUMNS, row[1:])
        value = parse_key(key.text)
        record = ApiKey(**stored | {"scopes": tuple(orjson.loads(stored["scopes"]))})
        if value is None or (value.prefix, value.identifier) != (record.prefix, record.key_id):
            return None
        verified = self._hasher.recall(value.identifier, value.secret)
        if verified not in record.hashes(now) or record.status(now) is not KeyStatus.ACTIVE:
            return None
        valid_until = record.expires_at
        previous_end = record.previous_end(now)
        if verified != record.secret_hash and previous_end is not None:
            valid_until = min(valid_until, previous_end)
        proven = ProvenRow(record.key_id, row[0], record.principal, valid_until)
        self._proven.add(key.digest, proven)
        return proven
