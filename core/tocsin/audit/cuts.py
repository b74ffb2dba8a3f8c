"""Cuts of the audit log by retention, and redactions: the chain stays verifiable after both."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

import structlog
from sqlalchemy import Connection, RowMapping, bindparam, delete, insert, select, update

from tocsin.audit.chain import GENESIS, compute_seal
from tocsin.audit.rows import allow_any_text, parse_details, select_rows
from tocsin.clock import isoformat
from tocsin.store import (
    AUDIT_POSITION,
    Archive,
    RemovalBatch,
    allot_numbers,
    lock_exclusively,
)
from tocsin.store.tables import EPOCH, audit, audit_cuts, audit_redactions

BATCH = 500
_MICROSECOND = timedelta(microseconds=1)
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class AuditCut:
    """The last position that retention removed, with its seal."""

    position: int = 0
    seal: str = GENESIS
    proof: str = ""

    def is_proven(self, key: bytes) -> bool:
        """Return whether the service made this cut; there is nothing to prove without one."""
        return not self.position or self.proof == prove_cut(key, self.position, self.seal)


def prove_cut(key: bytes, position: int, seal: str) -> str:
    """Return the proof that the service removed the entries up to this position."""
    return hmac.digest(key, f"cut:{position}:{seal}".encode(), "sha256").hex()


def prove_redaction(key: bytes, row: RowMapping) -> str:
    """Return the proof that the service changed the content of a sealed row to this."""
    return compute_seal(key, f"redacted:{row['seal']}:", row, row["position"])


_proof_at = select(audit_redactions.c.proof).where(
    audit_redactions.c.position == bindparam("position")
)


def is_sealed(connection: Connection, key: bytes, before: str, row: RowMapping) -> bool:
    """Return whether a row is as it was sealed, or as the service changed it since."""
    if compute_seal(key, before, row, row["position"]) == str(row["seal"]):
        return True
    proof = connection.scalar(_proof_at, {"position": row["position"]})
    return proof is not None and proof == prove_redaction(key, row)


def load_cut(connection: Connection) -> AuditCut:
    """Return the latest cut."""
    c = audit_cuts.c
    query = select(c.position, c.seal, c.proof).order_by(c.position.desc()).limit(1)
    row = connection.execute(query).one_or_none()
    return AuditCut() if row is None else AuditCut(*row)


def remove_entries(
    key: bytes, connection: Connection, _after: object, before: datetime, archive: Archive | None
) -> RemovalBatch:
    """Remove the oldest entries, and seal the cut. The last entry is always kept.

    Nothing is removed beyond an entry that was changed or is missing, which is evidence.
    Raises OSError if archiving fails.
    """
    lock_exclusively(connection, "the archive")
    last = allot_numbers(connection, AUDIT_POSITION, 0).stop - 1  # no entry is sealed meanwhile
    with allow_any_text(connection):
        cut = load_cut(connection)
        rows = (
            select_rows()
            .where(audit.c.position > cut.position, audit.c.position < last)
            .order_by(audit.c.position)
            .limit(BATCH)
        )
        old = list(
            _take_intact(connection, key, cut, connection.execute(rows).mappings().all(), before)
        )
    if not old:
        return RemovalBatch(0, None)
    if archive is not None:
        archive.add(list(_archive_lines(old)), "audit")
    position, seal = old[-1]["position"], str(old[-1]["seal"])
    proof = prove_cut(key, position, seal)
    connection.execute(
        insert(audit_cuts).values(position=position, seal=seal, at=before, proof=proof)
    )
    connection.execute(delete(audit_cuts).where(audit_cuts.c.position < position))
    connection.execute(delete(audit).where(audit.c.position <= position))
    connection.execute(delete(audit_redactions).where(audit_redactions.c.position <= position))
    return RemovalBatch(len(old), position if len(old) == BATCH else None)


def _take_intact(
    connection: Connection, key: bytes, cut: AuditCut, rows: Sequence[RowMapping], before: datetime
) -> Iterator[RowMapping]:
    until = (before - EPOCH) // _MICROSECOND
    position, seal = cut.position, cut.seal
    for row in rows:
        if not isinstance(row["at"], int) or row["at"] >= until:
            return
        is_next = row["position"] == position + 1
        if not (is_next and is_sealed(connection, key, seal, row)):
            _log.error(
                "audit log not truncated: an entry is missing or changed", position=position + 1
            )
            return
        yield row
        position, seal = row["position"], row["seal"]


def _archive_lines(old: Sequence[RowMapping]) -> Iterator[tuple[date, dict[str, Any]]]:
    for row in old:
        at = EPOCH + row["at"] * _MICROSECOND
        yield at.date(), {str(name): value for name, value in row.items()} | {"at": isoformat(at)}


_PLACES = ("actor", "target", "address", "request_id", "details")


def redact_entries(
    connection: Connection,
    key: bytes,
    redact: Callable[[Any], Any],
    after: int,
    *,
    dry_run: bool,
) -> tuple[int, int | None]:
    """Redact the next sealed entries; return their number, and the position of the last one read.

    The chain still verifies: the proof of a redaction covers the seal and the new content. An entry
    that was changed before in another way is left as it is, which is evidence.
    """
    query = select_rows().where(audit.c.position > after).order_by(audit.c.position).limit(BATCH)
    rows = connection.execute(query).mappings().all()
    count = 0
    for row in rows:
        changes = _redact_entry(row, redact)
        if not changes:
            continue
        count += 1
        if not dry_run:
            _store_redaction(connection, key, row, changes)
    return count, rows[-1]["position"] if len(rows) == BATCH else None


def _redact_entry(row: RowMapping, redact: Callable[[Any], Any]) -> dict[str, Any]:
    try:
        values = {name: row[name] for name in _PLACES} | {"details": parse_details(row["details"])}
    except (TypeError, ValueError):
        return {}
    redacted = {name: redact(value) for name, value in values.items()}
    return {name: redacted[name] for name in values if redacted[name] != values[name]}


def _store_redaction(
    connection: Connection, key: bytes, row: RowMapping, changes: Mapping[str, Any]
) -> None:
    position, r = row["position"], audit_redactions.c
    before = (
        connection.scalar(select(audit.c.seal).where(audit.c.position == position - 1))
        or load_cut(connection).seal
    )
    if not is_sealed(connection, key, before, row):
        _log.error("audit entry not erased: it is missing or changed", position=position)
        return
    connection.execute(delete(audit_redactions).where(r.position == position))
    connection.execute(insert(audit_redactions).values(position=position, proof=""))
    is_it = audit.c.position == position
    connection.execute(update(audit).where(is_it).values(**changes))
    stored = connection.execute(select_rows().where(is_it)).mappings().one()
    proof = prove_redaction(key, stored)
    connection.execute(update(audit_redactions).where(r.position == position).values(proof=proof))
