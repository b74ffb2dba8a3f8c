"""What can be searched for, kept and indexed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from tocsin.knowledge.search.composing import (
    MAX_TEXT,
    SearchDocument,
    build_tokens,
    to_fts5_text,
    to_tsvector,
)
from tocsin.store.batches import BulkStatement
from tocsin.store.sequences import allot_numbers
from tocsin.store.tables import documents

DOCUMENT_ID = "document_id"
_NAMES = ("id", "kind", "record", "at", "change", "title", "entities", "text", "tokens")


def index_document(connection: Connection, document: SearchDocument) -> None:
    """Make a document findable, or findable as it is now."""
    index_documents(connection, [document])


def index_documents(connection: Connection, wanted: Sequence[SearchDocument]) -> None:
    """Index every one of the documents, which are different ones."""
    known = _ids(connection, wanted)
    old = [(known[it.kind, it.record], it) for it in wanted if (it.kind, it.record) in known]
    new = [it for it in wanted if (it.kind, it.record) not in known]
    # FTS5 takes rows in the order of their ids in one go
    old.sort(key=lambda pair: pair[0])
    postgres = connection.dialect.name == "postgresql"
    _changes.run(connection, [_row(number, it, postgres=postgres) for number, it in old])
    if new:
        numbers = allot_numbers(connection, DOCUMENT_ID, len(new))
        pairs = zip(numbers, new, strict=True)
        _additions.run(connection, [_row(number, it, postgres=postgres) for number, it in pairs])


def remove_document(connection: Connection, kind: str, record: str) -> None:
    """Forget a document; nothing happens where there is none."""
    connection.execute(
        delete(documents).where(documents.c.kind == kind, documents.c.record == record)
    )


_additions = BulkStatement(insert(documents), _NAMES)
_changes = BulkStatement(
    update(documents)
    .where(documents.c.id == bindparam("its_id"))
    .values({name: bindparam(f"to_{name}") for name in _NAMES[1:]}),
    ("its_id", *(f"to_{name}" for name in _NAMES[1:])),
)


def _ids(connection: Connection, wanted: Sequence[SearchDocument]) -> dict[tuple[str, str], int]:
    by_kind = defaultdict(list)
    for document in wanted:
        by_kind[document.kind].append(document.record)
    known: dict[tuple[str, str], int] = {}
    for kind, records in by_kind.items():
        rows = connection.execute(_known, {"kind": kind, "records": records})
        known |= {(kind, record): number for number, record in rows}
    return known


_known = select(documents.c.id, documents.c.record).where(
    documents.c.kind == bindparam("kind"),
    documents.c.record.in_(bindparam("records", expanding=True)),
)


def _row(number: int, document: SearchDocument, *, postgres: bool) -> tuple[object, ...]:
    made = build_tokens(document)
    indexed = to_tsvector(made, number) if postgres else to_fts5_text(made)
    return (
        number,
        document.kind,
        document.record,
        document.at,
        document.change,
        document.title,
        " ".join(made.entities),
        document.text[:MAX_TEXT],
        indexed,
    )
