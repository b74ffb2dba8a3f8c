"""JSON documents of incidents, stored in the transaction that stores the incident."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from functools import cache
from typing import Any, NoReturn, cast

import orjson
from sqlalchemy import (
    Connection,
    RowMapping,
    and_,
    bindparam,
    exists,
    literal_column,
    select,
    update,
)

from tocsin.clock import Clock, isoformat
from tocsin.incidents.triage import Triage, load_triage
from tocsin.loops import beat, run_forever
from tocsin.store import (
    BulkStatement,
    Database,
    build_insert,
    is_in,
    load_last_allotted,
    lock_exclusively,
    restart_sequences,
)
from tocsin.store.tables import incident_documents, incident_entities, incidents, sequences

DOCUMENT_VERSION = 3
"""Version of the documents. Increase it with every change of what `represent_incident` returns:
documents of other versions are not used, and are rebuilt.
"""
COLUMNS = (
    "number",
    "provider",
    "external_id",
    "external_number",
    "title",
    "description",
    "severity",
    "raw_severity",
    "severity_assumed",
    "status",
    "raw_status",
    "merged_into",
    "source_url",
    "alert_count",
    "techniques",
    "tactics",
    "occurred_at",
    "created_at",
    "updated_at",
)
"""The columns in an incident's JSON."""
_MOMENTS = COLUMNS[-3:]
StoredEntity = tuple[str, str, str | None]
"""Kind, value and role of an entity, as they are stored."""
_REBUILT = "incident_documents_version"
"""Entry of `sequences` with the latest version in which every incident had a document."""
_BATCH = 200
_INTERVAL = timedelta(hours=1)


def build_incident_url(public_url: str, number: int) -> str:
    """Return the URL of the incident in the console."""
    return f"{public_url}/incidents/{number}"


def represent_incident(
    columns: Mapping[Any, Any], entities: list[dict[str, Any]], *, public_url: str
) -> dict[str, Any]:
    """Return the JSON of an incident for events, given as its columns: what its SIEM says."""
    url = build_incident_url(public_url, columns["number"])
    return {**_represent_members(columns, entities), "url": url}


def represent_triaged_incident(
    columns: Mapping[Any, Any],
    entities: list[dict[str, Any]],
    triage: Triage | None,
    *,
    public_url: str,
) -> dict[str, Any]:
    """Return the JSON of an incident for the API, given as its columns."""
    url = build_incident_url(public_url, columns["number"])
    return {**_represent_members(columns, entities), "triage": triage, "url": url}


def _represent_members(
    columns: Mapping[Any, Any], entities: list[dict[str, Any]]
) -> dict[str, Any]:
    shown = {name: columns[name] for name in COLUMNS}
    for name in _MOMENTS:
        shown[name] = isoformat(shown[name])
    shown["entities"] = entities
    return shown


def represent_entities(entities: Iterable[StoredEntity]) -> list[dict[str, Any]]:
    """Return the JSON of an incident's entities."""
    return [{"kind": kind, "value": value, "role": role} for kind, value, role in entities]


def render_document(
    columns: Mapping[Any, Any], entities: Iterable[StoredEntity], triage: Triage | None
) -> str:
    """Return the document of an incident: the members of its JSON, without braces and `url`."""
    members = _represent_members(columns, represent_entities(sorted(entities)))
    members["triage"] = triage
    return orjson.dumps(members)[1:-1].decode()


def store_documents(connection: Connection, documents: Iterable[tuple[int, int, str]]) -> None:
    """Store the documents of incidents, each with their number and `change`."""
    DOCUMENT_UPSERT.run(connection, build_document_rows(documents))


def build_document_rows(
    documents: Iterable[tuple[int, int, str]],
) -> list[tuple[int, int, int, str]]:
    """Return the rows of DOCUMENT_UPSERT for documents, each with their number and `change`."""
    return [(number, change, DOCUMENT_VERSION, document) for number, change, document in documents]


def complete_document(document: str, number: int, public_url: str) -> str:
    """Return the JSON of an incident from its document."""
    return f'{{{document},"url":{begin_url(public_url)}{number}"}}'


@cache
def begin_url(public_url: str) -> str:
    """Return the JSON of an incident's URL, up to its number."""
    return orjson.dumps(build_incident_url(public_url, 0)).decode()[:-2]


IS_CURRENT = and_(
    incident_documents.c.number == incidents.c.number,
    incident_documents.c.change == incidents.c.change,
    incident_documents.c.version == literal_column(str(DOCUMENT_VERSION)),
)
"""The condition for the valid document of an incident."""
DOCUMENT_COLUMNS = (incident_documents.c.change, incident_documents.c.document)
HAS_NUMBER = and_(
    incident_documents.c.number == bindparam("number"),
    exists().where(IS_CURRENT).correlate(incident_documents),
)
"""The condition for the valid document of the incident `number`."""

_REPLACED = ("change", "version", "document")


def _build_upsert(connection: Connection) -> Any:
    statement = build_insert(connection, incident_documents)
    replaced = {name: statement.excluded[name] for name in _REPLACED}
    return statement.on_conflict_do_update(index_elements=["number"], set_=replaced)


DOCUMENT_UPSERT = BulkStatement(_build_upsert, ("number", *_REPLACED))
"""The insert of documents, or their replacement."""
_window = and_(incidents.c.number > bindparam("after"), incidents.c.number <= bindparam("until"))
_numbers = (
    select(incidents.c.number)
    .where(incidents.c.number > bindparam("after"))
    .order_by(incidents.c.number)
    .limit(bindparam("limit"))
)
# Who stores a later version of an incident waits, and then stores a later document
_outdated = (
    select(incidents).where(_window, ~exists().where(IS_CURRENT)).with_for_update(key_share=True)
)
_complete = update(sequences).where(sequences.c.name == _REBUILT).values(value=DOCUMENT_VERSION)
_e = incident_entities.c
_entities = select(_e.incident_number, _e.kind, _e.value, _e.role).where(
    is_in(_e.incident_number, "numbers")
)
_incidents = select(incidents).where(is_in(incidents.c.number, "numbers"))


def refresh_documents(connection: Connection, numbers: Sequence[int]) -> None:
    """Store new documents of changed incidents, from their rows."""
    _store_rows(connection, connection.execute(_incidents, {"numbers": numbers}).mappings().all())


def _store_rows(connection: Connection, rows: Sequence[RowMapping]) -> None:
    """Store the documents of incidents, given as their rows."""
    numbers = [row["number"] for row in rows]
    if not numbers:
        return
    entities: dict[int, list[StoredEntity]] = defaultdict(list)
    for number, *entity in connection.execute(_entities, {"numbers": numbers}):
        entities[number].append(cast("StoredEntity", tuple(entity)))
    triage = load_triage(connection, numbers)
    documents = (
        (number, row["change"], render_document(row, entities[number], triage.get(number)))
        for number, row in zip(numbers, rows, strict=True)
    )
    store_documents(connection, documents)


def rebuild_documents(connection: Connection, after: int, limit: int = _BATCH) -> int | None:
    """Store the missing and outdated documents of the next incidents with numbers above `after`.

    Return the number of the last of them, None if there are no more.
    """
    numbers = connection.scalars(_numbers, {"after": after, "limit": limit}).all()
    if not numbers:
        connection.execute(_complete)
        return None
    lock_exclusively(connection, "incident documents")
    window = {"after": after, "until": numbers[-1]}
    rows = connection.execute(_outdated, window).mappings().all()
    _store_rows(connection, rows)
    return int(numbers[-1])


def restart_documents(connection: Connection) -> None:
    """Let the documents of all incidents be rebuilt, if there are none."""
    restart_sequences(connection, _REBUILT)


class DocumentRebuild:
    """Rebuilds the documents of all incidents, once after an upgrade that changed them."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def run(self) -> NoReturn:
        """Rebuild documents until cancelled."""
        await run_forever(self.rebuild, self._clock, "document rebuild", pause=_INTERVAL)

    async def rebuild(self) -> None:
        """Rebuild missing and outdated documents, unless this version was completed before."""
        last: int | None = 0
        if await self._database.lookup(load_last_allotted, _REBUILT) == DOCUMENT_VERSION:
            return
        while last is not None:
            last = await self._database.write_behind(rebuild_documents, last)
            beat()
