"""Sessions as they are searched for: what was asked, what was said, and what was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, select

from tocsin.investigations.report_codec import decode_report
from tocsin.knowledge.search import SearchDocument, index_document, index_documents
from tocsin.model import Report
from tocsin.reports import session_document_text
from tocsin.store.tables import session_messages, sessions

_LONGEST_TITLE = 200


def index_session(connection: Connection, session_id: str) -> None:
    """Have a session be found as it is now; its last report is searched while it runs again."""
    row = connection.execute(select(sessions).where(sessions.c.id == session_id)).mappings().one()
    m = session_messages.c
    said = select(m.text).where(m.session_id == session_id).order_by(m.number)
    report = decode_report(row["report"], session_id)
    texts = [*connection.scalars(said), *([session_document_text(report)] if report else [])]
    index_document(connection, _search_document(row, texts, report))


def index_new_sessions(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Have sessions be found by what is asked in them; nothing else is known of them yet."""
    index_documents(connection, [_search_document(row, [row["query"]]) for row in rows])


def _search_document(
    row: Mapping[Any, Any], texts: Sequence[str], report: Report | None = None
) -> SearchDocument:
    return SearchDocument(
        kind="session",
        record=row["id"],
        title=row.get("title") or row["query"][:_LONGEST_TITLE],
        text="\n".join(texts),
        at=row["created_at"],
        facets={name: row.get(name) for name in ("status", "provider", "persona", "verdict")},
        entities=[it.entity for it in report.entities] if report else (),
        techniques=report.techniques if report else (),
    )
