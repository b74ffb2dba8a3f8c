"""Hash chain of the audit log."""

from __future__ import annotations

import hmac
import json
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NoReturn

import structlog
from sqlalchemy import Connection, RowMapping, bindparam, exists, select, update
from sqlalchemy.exc import IntegrityError, NoResultFound

from tocsin.audit.rows import allow_any_text, parse_details, select_rows
from tocsin.clock import Clock
from tocsin.errors import TocsinError
from tocsin.loops import beat, run_forever
from tocsin.store import AUDIT_POSITION, Database, allot_numbers
from tocsin.store.tables import audit

SEAL = "audit"
"""The purpose for which the seal key is derived."""
GENESIS = "0" * 64
"""The seal before the first one."""


def compute_seal(key: bytes, before: str, row: RowMapping, position: int) -> str:
    """Return the HMAC of `row` at `position` and of the previous seal, `before`.

    Every row gets a seal, readable or not, so that no row blocks the rows after it.
    """
    content = {str(name): value for name, value in row.items() if name != "seal"}
    content |= _normalize_details(row["details"]) | {"position": position}
    # Sorted, since JSONB reorders keys; not with orjson, whose versions format floats differently
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), default=_encode_bytes)
    return hmac.digest(key, (before + canonical).encode("utf-8", "surrogatepass"), "sha256").hex()


def _normalize_details(text: str) -> dict[str, Any]:
    try:
        return {"details": parse_details(text)}
    except (
        TypeError,
        ValueError,
    ):  # marked, so that it differs from details that are the same text
        return {"details": text, "unreadable": True}


def _encode_bytes(value: bytes) -> dict[str, str]:
    # only SQLite returns bytes for text
    return {"bytes": value.hex()}


BATCH = 500
_PAUSE = timedelta(seconds=5)
_REPORT_EVERY = timedelta(hours=1)
_log = structlog.get_logger()

_unsealed = audit.c.position.is_(None)
_next_rows = select_rows().where(_unsealed).order_by(audit.c.id).limit(BATCH)
_seal_at = select(audit.c.seal).where(audit.c.position == bindparam("last"))
_set_seal = (
    update(audit)
    .where(audit.c.id == bindparam("row"))
    .values(position=bindparam("its_position"), seal=bindparam("its_seal"))
)


class BrokenSequenceError(TocsinError):
    """The row that counts sealed entries was removed or changed, so that nothing can be sealed."""


@dataclass(frozen=True, slots=True)
class SealedBatch:
    """Result of sealing one batch, with the new head of the chain."""

    count: int
    position: int
    seal: str


class Sealer:
    """Seals committed entries; several nodes may run it, each entry is sealed once."""

    def __init__(self, database: Database, key: bytes, clock: Clock) -> None:
        self._database = database
        self._key = key
        self._clock = clock
        self._report_at = clock.now()

    async def run(self) -> NoReturn:
        """Seal every few seconds until cancelled."""
        await run_forever(self._step, self._clock, "audit log sealer")

    async def _step(self) -> None:
        try:
            await self.seal()
        except BrokenSequenceError as error:
            self._report(error)
        await self._clock.sleep(_PAUSE)

    def _report(self, error: BrokenSequenceError) -> None:
        """Log it once an hour: nothing but a restored database ends it."""
        now = self._clock.now()
        if now >= self._report_at:
            self._report_at = now + _REPORT_EVERY
            advice = "restore the database from a backup, and run `tocsin audit verify`"
            _log.error("audit log not sealed", reason=str(error), advice=advice)

    async def seal(self) -> int:
        """Seal all committed, unsealed entries, and return their number.

        Raises `BrokenSequenceError`.
        """
        count = 0
        while await self._database.read(_has_unsealed):
            try:
                sealed = await self._database.write(_seal_next, self._key)
            except IntegrityError:
                message = f"the sequence {AUDIT_POSITION!r} is behind the sealed entries"
                raise BrokenSequenceError(message) from None
            count += sealed.count
            beat()
            # a truncated chain is still a valid chain; the log line is a witness of its head
            _log.info("audit sealed", position=sealed.position, seal=sealed.seal)
        return count


def _has_unsealed(connection: Connection) -> bool:
    return bool(connection.execute(select(exists().where(_unsealed))).scalar_one())


def _seal_next(connection: Connection, key: bytes) -> SealedBatch:
    with allow_any_text(connection):
        return _seal_batch(connection, key)


def _seal_batch(connection: Connection, key: bytes) -> SealedBatch:
    # Locking the sequence before the query keeps other sealers from reading the same rows.
    try:
        last = allot_numbers(connection, AUDIT_POSITION, 0).stop - 1
    except NoResultFound:
        raise BrokenSequenceError(f"the sequence {AUDIT_POSITION!r} is missing") from None
    except TypeError:
        raise BrokenSequenceError(f"the sequence {AUDIT_POSITION!r} has no valid value") from None
    rows = connection.execute(_next_rows).mappings().all()
    # Where the last row was removed the chain restarts, and `verify` reports the missing row.
    seal = str(connection.execute(_seal_at, {"last": last}).scalar_one_or_none() or GENESIS)
    changes = []
    for position, row in zip(
        allot_numbers(connection, AUDIT_POSITION, len(rows)), rows, strict=True
    ):
        seal = compute_seal(key, seal, row, position)
        changes.append({"row": row["id"], "its_position": position, "its_seal": seal})
    if changes:
        connection.execute(_set_seal, changes)
    return SealedBatch(len(changes), last + len(changes), seal)
