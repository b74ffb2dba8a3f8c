"""Comparison of stored documents of incidents with the incidents' own rows."""

from __future__ import annotations

from sqlalchemy import Connection, select

from tocsin.incidents.documents import DOCUMENT_VERSION, render_document
from tocsin.incidents.triage import load_triage
from tocsin.store.tables import incident_documents, incident_entities, incidents

_MOST = 50


def compare_documents(connection: Connection) -> int:
    """Compare the latest documents with what would be stored now, and return their number."""
    table = incident_documents.c
    latest = select(incident_documents).order_by(table.change.desc()).limit(_MOST)
    stored = connection.execute(latest.where(table.version == DOCUMENT_VERSION)).all()
    for number, change, _, document in stored:
        row = connection.execute(select(incidents).where(incidents.c.number == number)).one()
        entities = incident_entities.c
        columns = (entities.kind, entities.value, entities.role)
        named = select(*columns).where(entities.incident_number == number)
        triage = load_triage(connection, [number]).get(number)
        made = render_document(row._mapping, map(tuple, connection.execute(named)), triage)
        assert (change, document) == (row.change, made)
    return len(stored)
