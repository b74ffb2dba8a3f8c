"""Audit log verification."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain, islice

from sqlalchemy import Connection, RowMapping, bindparam, func, or_, select

from tocsin.audit.cuts import AuditCut, is_sealed, load_cut
from tocsin.audit.rows import allow_any_text, select_rows
from tocsin.store import AUDIT_POSITION, clean_text
from tocsin.store.tables import audit, sequences

MOST_PROBLEMS = 100
SEALED_WITHIN = timedelta(minutes=1)  # a sealer needs a few seconds
_BATCH = 500

_rows = (
    select_rows()
    .where(audit.c.position > bindparam("after"), audit.c.position <= bindparam("last"))
    .order_by(audit.c.position)
    .limit(_BATCH)
)
_head = (
    select(audit.c.position, audit.c.seal)
    .where(audit.c.position <= bindparam("last"))
    .order_by(audit.c.position.desc())
    .limit(1)
)
_seal_at = select(audit.c.seal).where(audit.c.position == bindparam("position"))
_sequence = select(sequences.c.value).where(sequences.c.name == AUDIT_POSITION)
_allotted = _sequence.scalar_subquery()
_last_position = select(func.coalesce(func.max(audit.c.position), 0))
_never_allotted = (
    select(audit.c.id, audit.c.position)
    .where(or_(audit.c.position < 1, audit.c.position > _allotted))
    .order_by(audit.c.position)
    .limit(MOST_PROBLEMS)
)
_counts = select(func.count(audit.c.position), func.count())
_NO_SEQUENCE = (
    f"the sequence {AUDIT_POSITION!r} is missing or has no valid value, so Tocsin cannot seal "
    f"entries or detect removals from the end of the log; compare the log with a head that is "
    f"stored elsewhere"
)
_overdue = select(func.min(audit.c.id), func.count()).where(
    audit.c.position.is_(None), audit.c.at < bindparam("due")
)


@dataclass(frozen=True, slots=True)
class AuditVerification:
    """Result of a verification; the log is intact where there are no problems."""

    entries: int
    """The number of sealed entries."""
    unsealed: int
    """The number of unsealed entries, which are a problem only once they are overdue."""
    head_position: int | None
    """The end of the chain, to keep as a witness; None where nothing is sealed."""
    head_seal: str | None
    problems: list[str]
    """At most 100. Problems in every row suggest a wrong key rather than tampering."""


def verify(
    connection: Connection, key: bytes, *, now: datetime, head: tuple[int, str] | None = None
) -> AuditVerification:
    """Verify the chain, and that it still holds a `head` witnessed before.

    Without a `head`, a chain truncated together with its sequence looks like one that never was
    longer. Problems never name the correct seal, which would allow forging it.
    """
    with allow_any_text(connection):
        return _verify(connection, key, now, head)


def _verify(
    connection: Connection, key: bytes, now: datetime, head: tuple[int, str] | None
) -> AuditVerification:
    # Every statement sees what was committed when it started. The sequence is therefore read first:
    # all rows up to it are visible to the statements below, whatever is sealed meanwhile.
    found_value = connection.execute(_sequence).scalar_one_or_none()
    allotted = found_value if isinstance(found_value, int) else None  # SQLite stores anything
    last = connection.execute(_last_position).scalar_one() if allotted is None else allotted
    found = connection.execute(_head, {"last": last}).one_or_none()
    cut = load_cut(connection)
    sealed, total = connection.execute(_counts).one()
    problems = chain(
        () if allotted is not None else (_NO_SEQUENCE,),
        () if cut.is_proven(key) else (f"position {cut.position}: the cut was not made by Tocsin",),
        _check_witness(connection, head, cut),
        _check_unsealed(connection, now),
        _check_positions(connection),
        _check_chain(connection, key, last, cut),
    )
    return AuditVerification(
        entries=sealed,
        unsealed=total - sealed,
        head_position=found.position if found else None,
        head_seal=_format_seal(found.seal) if found else None,
        problems=list(islice(problems, MOST_PROBLEMS)),
    )


def _check_witness(
    connection: Connection, head: tuple[int, str] | None, cut: AuditCut
) -> Iterator[str]:
    if head is None or head[0] < cut.position:  # which retention removed
        return
    position, witnessed = head
    seal = (
        cut.seal
        if position == cut.position
        else connection.execute(_seal_at, {"position": position}).scalar_one_or_none()
    )
    if seal != witnessed:
        instead = _format_seal(seal) if seal else "nothing"
        yield f"position {position}: expected the recorded seal {witnessed}, found {instead}"


def _format_seal(seal: object) -> str:
    return clean_text(str(seal), 64)


def _check_unsealed(connection: Connection, now: datetime) -> Iterator[str]:
    row, count = connection.execute(_overdue, {"due": now - SEALED_WITHIN}).one()
    if count:
        yield (
            f"row {row}: unsealed for more than a minute, {count} rows in total; "
            "a running service seals rows within seconds"
        )


def _check_positions(connection: Connection) -> Iterator[str]:
    for row in connection.execute(_never_allotted):
        yield f"position {row.position} (row {row.id}): the position was never assigned"


def _check_chain(connection: Connection, key: bytes, last: int, cut: AuditCut) -> Iterator[str]:
    """Yield the missing and the invalid rows of the chain from a cut up to the position `last`."""
    position, seal = cut.position, cut.seal
    for row in _iter_rows(connection, position, last):
        place = f"position {row['position']} (row {row['id']})"
        if row["position"] > position + 1:
            missing = _describe_missing(position, row["position"] - 1)
            yield f"{missing}, so {place} cannot be verified"
        elif not is_sealed(connection, key, seal, row):
            yield f"{place}: the seal does not match the content and the previous seal"
        position, seal = row["position"], str(row["seal"])
    if position < last:
        yield f"{_describe_missing(position, last)}; position {last} was the last one assigned"


def _iter_rows(connection: Connection, after: int, last: int) -> Iterator[RowMapping]:
    while rows := connection.execute(_rows, {"after": after, "last": last}).mappings().all():
        yield from rows
        after = rows[-1]["position"]


def _describe_missing(before: int, last: int) -> str:
    first = before + 1
    return (
        f"positions {first} to {last} are missing"
        if first < last
        else f"position {last} is missing"
    )
