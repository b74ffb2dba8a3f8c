"""Incident queries and their JSON representation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    Select,
    bindparam,
    func,
    select,
)

from tocsin.clock import isoformat
from tocsin.errors import InvalidInputError
from tocsin.model import IncidentStatus, Severity
from tocsin.store import (
    INCIDENT_CHANGE,
    MAX_COUNTED,
    Total,
    build_bounded_count,
    load_last_allotted,
)
from tocsin.store.tables import incident_entities, incidents

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
"""The columns in the JSON of an incident."""
_MOMENTS = COLUMNS[-3:]


def build_incident_url(public_url: str, number: int) -> str:
    """Return the URL of the incident in the console."""
    return f"{public_url}/incidents/{number}"


def represent_incident(
    columns: Mapping[Any, Any], entities: list[dict[str, str]], *, public_url: str
) -> dict[str, Any]:
    """Return the JSON of an incident, given as its columns."""
    shown = {name: columns[name] for name in COLUMNS}
    for name in _MOMENTS:
        shown[name] = isoformat(shown[name])
    shown["url"] = build_incident_url(public_url, shown["number"])
    shown["entities"] = entities
    return shown


_NEWEST = 2**63 - 1
_shown = select(*(incidents.c[name] for name in COLUMNS), incidents.c.change)
_select_one = _shown.where(incidents.c.number == bindparam("number"))
_e = incident_entities.c
_every_entity = select(_e.incident_number, _e.kind, _e.value).order_by(
    _e.incident_number, _e.kind, _e.value
)
_entities = _every_entity.where(_e.incident_number.in_(bindparam("numbers", expanding=True)))
# An expanding list is compiled at each execution, which costs as much as running it.
_entities_of_one = _every_entity.where(_e.incident_number == bindparam("number"))
# The clocks of two nodes differ, so the earliest change by time is not always the lowest; but it is
# among the next ones. Without the limit, SQLite would scan all changes from the oldest on.
_first_changes = (
    select(incidents.c.change)
    .where(incidents.c.updated_at >= bindparam("since"))
    .order_by(incidents.c.updated_at, incidents.c.change)
    .limit(MAX_COUNTED)
)
_first_change = select(func.min(_first_changes.subquery().c.change))


@dataclass(frozen=True, slots=True)
class IncidentPage:
    """One page of a list; `next` and `resume` are values of `change` to continue from."""

    incidents: list[dict[str, Any]]
    total: int
    exact: bool
    """False where there are more than `total`."""
    next: int | None
    """The last `change` of this page where more follows, else None."""
    resume: int
    """A client that reads the list to its end has seen every change up to this one."""


def get_incident(connection: Connection, number: int, *, public_url: str) -> dict[str, Any] | None:
    """Return the JSON of an incident, None for an unknown number."""
    row = connection.execute(_select_one, {"number": number}).mappings().one_or_none()
    return None if row is None else _represent_rows(connection, [row], public_url)[0]


def list_incidents(
    connection: Connection,
    *,
    public_url: str,
    limit: int,
    severity: Severity | None = None,
    status: IncidentStatus | None = None,
    since: datetime | None = None,
    before: int | None = None,
    after: int | None = None,
) -> IncidentPage:
    """Return a page of matching incidents, the most recently changed first.

    With `after`, return those changed after that `change`, in the order of their changes. `since`
    excludes incidents unchanged from that time on; `before` continues an earlier page. Raises
    InvalidInputError for an `after` beyond the latest change of this database.
    """
    # Every statement sees what was committed when it started. The sequence is therefore read first:
    # all changes up to it are visible to the statements below, whatever is committed meanwhile.
    newest = load_last_allotted(connection, INCIDENT_CHANGE)
    if (after or 0) > newest:
        raise InvalidInputError("This cursor is from another database; start without a cursor.")
    oldest = max(after or 0, _find_first_change(connection, since, newest))
    values = {
        "after": oldest,
        "before": before or _NEWEST,
        "severity": severity,
        "status": status,
        "limit": limit + 1,
    }
    conditions = (severity is not None, status is not None)
    total = Total.of(connection.execute(_select_count(*conditions), values).scalar_one())
    page = _select_page(*conditions, ascending=after is not None)
    found = connection.execute(page, values).mappings().all()
    rows = found[:limit]
    last: int = rows[-1]["change"] if rows else oldest
    return IncidentPage(
        incidents=_represent_rows(connection, rows, public_url),
        total=total.count,
        exact=total.exact,
        next=last if len(found) > limit else None,
        resume=newest if after is None else last,
    )


def _find_first_change(connection: Connection, since: datetime | None, newest: int) -> int:
    """Return the `change` after which all changes at `since` or later lie."""
    if since is None:
        return 0
    first = connection.execute(_first_change, {"since": since}).scalar_one()
    return newest if first is None else first - 1


def _build_conditions(by_severity: bool, by_status: bool) -> Iterable[ColumnElement[bool]]:
    yield incidents.c.change > bindparam("after")
    if by_severity:
        yield incidents.c.severity == bindparam("severity")
    if by_status:
        yield incidents.c.status == bindparam("status")


@cache
def _select_page(by_severity: bool, by_status: bool, *, ascending: bool) -> Select[Any]:
    order = incidents.c.change.asc() if ascending else incidents.c.change.desc()
    return (
        _shown.where(
            *_build_conditions(by_severity, by_status), incidents.c.change < bindparam("before")
        )
        .order_by(order)
        .limit(bindparam("limit"))
    )


@cache
def _select_count(by_severity: bool, by_status: bool) -> Select[Any]:
    return build_bounded_count(incidents, _build_conditions(by_severity, by_status))


def _load_entities(connection: Connection, numbers: list[int]) -> Iterable[Any]:
    match numbers:
        case []:
            return ()
        case [number]:
            return connection.execute(_entities_of_one, {"number": number})
    return connection.execute(_entities, {"numbers": numbers})


def _represent_rows(
    connection: Connection, rows: Sequence[RowMapping], public_url: str
) -> list[dict[str, Any]]:
    entities: dict[int, list[dict[str, str]]] = {row["number"]: [] for row in rows}
    for number, kind, value in _load_entities(connection, list(entities)):
        entities[number].append({"kind": kind, "value": value})
    return [represent_incident(row, entities[row["number"]], public_url=public_url) for row in rows]
