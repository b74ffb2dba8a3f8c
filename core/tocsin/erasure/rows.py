"""Erasure from the rows of all tables, except the audit log."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import orjson
from sqlalchemy import (
    JSON,
    ColumnElement,
    Connection,
    RowMapping,
    String,
    Table,
    Text,
    and_,
    cast,
    delete,
    func,
    insert,
    literal,
    or_,
    select,
    tuple_,
    update,
)
from sqlalchemy.exc import IntegrityError

from tocsin.incidents import lock_incidents, refresh_documents
from tocsin.investigations import LedgerStep, index_session, load_steps, replace_steps
from tocsin.knowledge import digest_relation, list_lookup_names, lock_relations, reindex_incidents
from tocsin.model import Entity, EntityKind, SessionStatus
from tocsin.store import INCIDENT_CHANGE, Redactor, allot_numbers
from tocsin.store.tables import (
    OWN_WORDS,
    attempts,
    entities,
    entity_names,
    incident_alerts,
    incident_comments,
    incident_entities,
    incident_labels,
    incident_techniques,
    incident_triage,
    incidents,
    metadata,
    quarantine,
    relation_sources,
    relations,
    saved_views,
    session_messages,
    sessions,
)

BATCH = 50
CONFIGURATION = frozenset(
    {"api_clients", "api_keys", "destinations", "passkeys", "people", "schedules", "suppressions"}
)
"""Tables of what operators configure, which is reported instead of changed."""
_LEFT_OUT = CONFIGURATION | {
    *("audit", "audit_cuts", "audit_redactions", "erasures", "sequences", "signing_keys", "epochs"),
    *("documents", "entity_names", "incident_documents", "incident_counts", "session_steps"),
    *("record_shapes", "removed_incidents", "revoked_tokens", "rate_usage", "nodes", "write_marks"),
}
"""Tables without values of their own, those made from others, and those erased in another way."""
_ESCAPED = r"\u00"
"""Start of the escape sequences by which JSON can spell letters and digits."""
_BYTES = {attempts.c.response, quarantine.c.content, quarantine.c.request}
_INCIDENT_TABLES: Mapping[Table, str] = {
    incidents: "number",
    incident_entities: "incident_number",
    incident_alerts: "incident_number",
    incident_techniques: "incident_number",
    incident_triage: "incident_number",
    incident_labels: "incident_number",
    incident_comments: "incident_number",
}
_SESSION_TABLES: Mapping[Table, str] = {sessions: "id", session_messages: "session_id"}
_ENDED = (SessionStatus.COMPLETED, SessionStatus.FAILED, SessionStatus.CANCELLED)


@dataclass(slots=True)
class Found:
    """What was found, and erased unless it was only counted."""

    rows: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    """Number of rows by table."""
    configuration: list[str] = field(default_factory=list)
    """Configured objects that name the value, which stay."""
    active_sessions: int = 0
    """Investigations that run, whose steps stay until the next time."""


def list_tables() -> list[Table]:
    """Return the tables that are searched row by row."""
    return [table for table in metadata.sorted_tables if table.name not in _LEFT_OUT]


def _text_columns(table: Table) -> list[Any]:
    return [
        column
        for column in table.c
        if (isinstance(column.type, String | Text | JSON) or column in _BYTES)
        and not column.info.keys() & OWN_WORDS
    ]


def _contains(connection: Connection, column: Any, needle: str | None) -> ColumnElement[bool]:
    """Return a condition that every row with the value meets, and few others."""
    if needle is None:
        return literal(value=True)
    if column not in _BYTES:
        found: ColumnElement[bool] = func.lower(cast(column, Text)).contains(
            needle, autoescape=True
        )
        return found
    if connection.dialect.name == "postgresql":
        text, position = func.lower(func.encode(column, "escape")), func.strpos
    else:  # where LIKE ends at a null character
        text, position = func.lower(cast(column, Text)), func.instr
    return or_(position(text, needle) > 0, position(text, _ESCAPED) > 0)


def find_needle(value: str) -> str:
    """Return the longest part of a value that both databases compare and store alike."""
    parts = "".join(each if each.isascii() and each.isalnum() else " " for each in value).split()
    return max(parts, key=len, default="").lower()


def _select_matching(
    connection: Connection, table: Table, needle: str | None, after: Sequence[Any] | None
) -> Sequence[RowMapping]:
    key = tuple_(*table.primary_key.columns)
    conditions = [_contains(connection, column, needle) for column in _text_columns(table)]
    query = select(table).where(or_(*conditions)).order_by(*table.primary_key.columns).limit(BATCH)
    if after is not None:
        query = query.where(key > tuple_(*after))
    return connection.execute(query).mappings().all()


def erase_batch(
    connection: Connection,
    table: Table,
    redactor: Redactor,
    *,
    needle: str | None,
    after: Sequence[Any] | None,
    now: datetime,
    dry_run: bool,
) -> tuple[int, Sequence[Any] | None]:
    """Erase from the next rows of a table; return their number, and the position of the next."""
    if not dry_run:
        _lock(connection, table)
    rows = _select_matching(connection, table, needle, after)
    changed = [(row, changes) for row in rows if (changes := _redact_row(table, row, redactor))]
    if not dry_run:
        for row, changes in changed:
            _store(connection, table, row, changes)
        _update_derived(connection, table, [row for row, _ in changed], now)
    keys = table.primary_key.columns.keys()
    last = None if len(rows) < BATCH else tuple(rows[-1][name] for name in keys)
    return len(changed), last


def _lock(connection: Connection, table: Table) -> None:
    if table in _INCIDENT_TABLES:
        lock_incidents(connection)
    elif table in (relations, relation_sources):
        lock_relations(connection)


def _redact_row(table: Table, row: RowMapping, redactor: Redactor) -> dict[str, Any]:
    values = {column.name: row[column.name] for column in _text_columns(table)}
    if table is saved_views:  # of the owner, what follows the kind of principal
        values["owner"] = values["owner"].partition(":")[2]
        values["filters"] = orjson.loads(values["filters"])
    redacted = {name: redactor.redact(value) for name, value in values.items()}
    return {name: redacted[name] for name in values if redacted[name] != values[name]}


def _store(connection: Connection, table: Table, row: RowMapping, changes: dict[str, Any]) -> None:
    """Store a changed row; one whose key exists already is merged into that.

    A saved view is deleted, because it filters by what is no longer stored.
    """
    is_it = and_(*(column == row[column.name] for column in table.primary_key.columns))
    if table is saved_views:
        if changes.keys() == {"filters"}:  # which the owner may have changed since
            is_it &= table.c.filters == row["filters"]
        connection.execute(delete(table).where(is_it))
        return
    if table is relations:
        changes["digest"] = digest_relation({**row, **changes})
    try:
        with connection.begin_nested():
            connection.execute(update(table).where(is_it).values(changes))
    except IntegrityError:
        if table is relations:
            theirs = relation_sources.c.relation_id == row["id"]
            connection.execute(delete(relation_sources).where(theirs))
        connection.execute(delete(table).where(is_it))
    if table is entities:
        _rename_entity(connection, row, changes)


def _rename_entity(connection: Connection, row: RowMapping, changes: Mapping[str, Any]) -> None:
    """Replace the lookup names of an entity."""
    n = entity_names.c
    old = (n.kind == row["kind"], n.value == row["value"])
    connection.execute(delete(entity_names).where(*old))
    new = Entity(EntityKind(row["kind"]), changes.get("value", row["value"]))
    connection.execute(delete(entity_names).where(n.kind == new.kind, n.value == new.value))
    names = [
        {"name": name, "part": part, "kind": new.kind.value, "value": new.value}
        for name, part in list_lookup_names(new)
    ]
    connection.execute(insert(entity_names), names)


def _update_derived(
    connection: Connection, table: Table, rows: Sequence[RowMapping], now: datetime
) -> None:
    """Update what is made from these rows: documents, and the search index."""
    if (name := _INCIDENT_TABLES.get(table)) and rows:
        numbers = sorted({row[name] for row in rows})
        for number, change in zip(
            numbers, allot_numbers(connection, INCIDENT_CHANGE, len(numbers)), strict=True
        ):
            renewed = update(incidents).where(incidents.c.number == number)
            connection.execute(renewed.values(change=change, updated_at=now))
        refresh_documents(connection, numbers)
        reindex_incidents(connection, numbers)
    if name := _SESSION_TABLES.get(table):
        for session_id in sorted({row[name] for row in rows}):
            index_session(connection, session_id)


def erase_steps(
    connection: Connection, redactor: Redactor, after: str, *, dry_run: bool
) -> tuple[int, int, str | None]:
    """Erase from the steps of the next session that has ended.

    Return the number of changed steps, of sessions that still run, and the ID of the session.
    """
    query = select(sessions.c.id, sessions.c.status).where(sessions.c.id > after)
    row = connection.execute(query.order_by(sessions.c.id).limit(1).with_for_update()).one_or_none()
    if row is None:
        return 0, 0, None
    if row.status not in _ENDED:
        return 0, 1, row.id
    steps = load_steps(connection, row.id)
    redacted = [_redact_step(step, redactor) for step in steps]
    changed = sum(new is not old for new, old in zip(redacted, steps, strict=True))
    if changed and not dry_run:
        replace_steps(connection, row.id, redacted)
    return changed, 0, row.id


def _redact_step(step: LedgerStep, redactor: Redactor) -> LedgerStep:
    """Return a step, the same one if nothing was found; its JSON is redacted as values."""
    redacted = redactor.redact(replace(step, question=None, answer=None))
    question, answer = (_redact_json(text, redactor) for text in (step.question, step.answer))
    new = replace(redacted, question=question, answer=answer)
    return step if new == step else new


def _redact_json(text: str | None, redactor: Redactor) -> str | None:
    if text is None:
        return None
    value = orjson.loads(text)
    redacted = redactor.redact(value)
    return text if redacted is value else orjson.dumps(redacted).decode()


def find_configuration(
    connection: Connection, redactor: Redactor, needle: str | None
) -> Iterator[str]:
    """Yield the configured objects that name an erased value, such as `destinations:soc`."""
    for name in sorted(CONFIGURATION):
        table, after = metadata.tables[name], None
        [key] = table.primary_key.columns
        while rows := _select_matching(connection, table, needle, after):
            for row in rows:
                if changes := _redact_row(table, row, redactor):
                    yield f"{name}:{row[key.name]} ({', '.join(sorted(changes))})"
            after = (rows[-1][key.name],)


def merge_index(connection: Connection) -> bool:
    """Merge part of SQLite's search index, which keeps removed words, and return if any is left."""
    if connection.dialect.name != "sqlite":
        return False
    before = connection.exec_driver_sql("SELECT total_changes()").scalar_one()
    connection.exec_driver_sql(
        "INSERT INTO documents_index (documents_index, rank) VALUES ('merge', -500)"
    )
    after = connection.exec_driver_sql("SELECT total_changes()").scalar_one()
    return bool(after - before > 1)
