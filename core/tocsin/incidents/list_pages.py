"""Pages of the incident list, and single incidents, as JSON.

`fast_list_pages` reads the same pages from stored documents. This module serves the requests that
it cannot: lists with a time span, pages with a missing document, and the console.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    Select,
    bindparam,
    func,
    or_,
    select,
)

from tocsin.errors import InvalidInputError
from tocsin.incidents.documents import (
    COLUMNS,
    StoredEntity,
    represent_entities,
    represent_triaged_incident,
)
from tocsin.incidents.filters import IncidentFilter
from tocsin.incidents.triage import TriageFilter, load_triage
from tocsin.model import IncidentStatus, Severity, Vocabulary
from tocsin.store import (
    INCIDENT_CHANGE,
    MAX_COUNTED,
    Total,
    build_bounded_count,
    load_last_allotted,
)
from tocsin.store.tables import EPOCH, incident_entities, incidents

NEWEST = 2**63 - 1
_shown = select(*(incidents.c[name] for name in COLUMNS), incidents.c.change)
_select_one = _shown.where(incidents.c.number == bindparam("number"))
_e = incident_entities.c
_every_entity = select(_e.incident_number, _e.kind, _e.value, _e.role)
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


_MICROSECOND = timedelta(microseconds=1)


class IncidentOrder(Vocabulary):
    """Order of a list of incidents."""

    CHANGED = "changed"
    """The most recently changed first."""
    OCCURRED = "occurred"
    """The most recently occurred first."""
    SEVERITY = "severity"
    """The most severe first and, within a severity, the most recently changed."""


SortPosition = tuple[int | str, int]
"""Microseconds since the epoch and a number, or a severity and a `change`."""


@dataclass(frozen=True, slots=True)
class IncidentPage:
    """One page of a list; `next` and `resume` are what to continue from."""

    incidents: list[dict[str, Any]]
    total: int
    exact: bool
    """False if there are more than `total`."""
    next: int | SortPosition | None
    """The last `change` or position of this page where more follows, else None."""
    resume: int
    """A client that reads the list to its end has seen every change up to this one."""
    version: str
    """Text that differs between states of this page."""


@dataclass(frozen=True, slots=True)
class FoundIncident:
    """An incident as JSON, and the `change` of this version."""

    content: dict[str, Any]
    change: int


def find_incident(connection: Connection, number: int, *, public_url: str) -> FoundIncident | None:
    """Return an incident, None for an unknown number."""
    row = connection.execute(_select_one, {"number": number}).mappings().one_or_none()
    if row is None:
        return None
    return FoundIncident(_represent_rows(connection, [row], public_url)[0], row["change"])


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
    triage: TriageFilter | None = None,
    content: IncidentFilter | None = None,
    order: IncidentOrder = IncidentOrder.CHANGED,
    position: SortPosition | None = None,
) -> IncidentPage:
    """Return a page of matching incidents, by default the most recently changed first.

    With `after`, return those changed after that `change`, in the order of their changes. `since`
    excludes incidents unchanged from that time on; `before` continues an earlier page, and in
    other orders `position`. Raises InvalidInputError for an `after` beyond the latest change of
    this database.
    """
    # Every statement sees what was committed when it started. The sequence is therefore read first:
    # all changes up to it are visible to the statements below, whatever is committed meanwhile.
    newest = load_last_allotted(connection, INCIDENT_CHANGE)
    if (after or 0) > newest:
        raise InvalidInputError("This cursor is from another database; start without a cursor.")
    oldest = max(after or 0, _find_first_change(connection, since, newest))
    values = {
        "after": oldest,
        "before": before or NEWEST,
        "severity": severity,
        "status": status,
        "limit": limit + 1,
    }
    filters = (severity is not None, status is not None)
    wanted = (each for each in (triage, content) if each is not None)
    further = [condition for each in wanted for condition in each.list_conditions()]
    conditions = (*build_conditions(*filters), *further)
    count = build_bounded_count(incidents, conditions) if further else _select_count(*filters)
    total = Total.of(connection.execute(count, values).scalar_one())
    if order is IncidentOrder.CHANGED:
        page = _select_page(*filters, ascending=after is not None)
        found = connection.execute(page.where(*further), values).mappings().all()
    else:
        found = _load_sorted(connection, order, position, conditions, values)
    rows = found[:limit]
    last: int = rows[-1]["change"] if rows else oldest
    return IncidentPage(
        incidents=_represent_rows(connection, rows, public_url),
        total=total.count,
        exact=total.exact,
        next=_describe_position(order, rows[-1]) if len(found) > limit else None,
        resume=newest if after is None else last,
        version=build_version(
            newest, total, [row["change"] for row in rows], len(rows), len(found) > limit
        ),
    )


def _load_sorted(
    connection: Connection,
    order: IncidentOrder,
    position: SortPosition | None,
    conditions: Iterable[ColumnElement[bool]],
    values: Mapping[str, Any],
) -> Sequence[RowMapping]:
    c = incidents.c
    query = _shown.where(*conditions).limit(bindparam("limit"))
    if order is IncidentOrder.OCCURRED:
        query = query.order_by(c.occurred_at.desc(), c.number.desc())
        if position is not None:
            at = EPOCH + int(position[0]) * _MICROSECOND
            is_later = or_(c.occurred_at < at, c.number < position[1])
            query = query.where(c.occurred_at <= at, is_later)
        return connection.execute(query, values).mappings().all()
    # One statement for each severity, which an index answers in the order of changes
    highest, before = position or (Severity.CRITICAL, NEWEST)
    found: list[RowMapping] = []
    for severity in reversed(Severity):
        rest = values["limit"] - len(found)
        is_wanted = severity.rank <= Severity(str(highest)).rank
        if rest and is_wanted and values["severity"] in {None, severity}:
            is_before = c.change < (before if severity == highest else NEWEST)
            each = query.where(c.severity == severity, is_before).order_by(c.change.desc())
            found += connection.execute(each, {**values, "limit": rest}).mappings().all()
    return found


def _describe_position(order: IncidentOrder, row: RowMapping) -> int | SortPosition:
    match order:
        case IncidentOrder.OCCURRED:
            return (row["occurred_at"] - EPOCH) // _MICROSECOND, row["number"]
        case IncidentOrder.SEVERITY:
            return row["severity"], row["change"]
    change: int = row["change"]
    return change


def _find_first_change(connection: Connection, since: datetime | None, newest: int) -> int:
    """Return the `change` after which all changes at `since` or later lie."""
    if since is None:
        return 0
    first = connection.execute(_first_change, {"since": since}).scalar_one()
    return newest if first is None else first - 1


def build_version(
    newest: int, total: Total, changes: Collection[int], rows: int, has_more: bool
) -> str:
    """Return what tells one state of a page from another.

    Every stored change is a new `newest`; removed incidents change the total or, beyond the limit
    of exact totals, the extent of the page.
    """
    extent = (min(changes), max(changes)) if changes else (0, 0)
    parts = (newest, total.count, total.exact, *extent, rows, has_more)
    return ".".join(f"{part:x}" for part in parts)


def build_conditions(by_severity: bool, by_status: bool) -> Iterable[ColumnElement[bool]]:
    """Yield the conditions for incidents after a `change` and, if so, of a severity or status."""
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
            *build_conditions(by_severity, by_status), incidents.c.change < bindparam("before")
        )
        .order_by(order)
        .limit(bindparam("limit"))
    )


@cache
def _select_count(by_severity: bool, by_status: bool) -> Select[Any]:
    return build_bounded_count(incidents, build_conditions(by_severity, by_status))


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
    entities: dict[int, list[StoredEntity]] = {row["number"]: [] for row in rows}
    for number, kind, value, role in _load_entities(connection, list(entities)):
        entities[number].append((kind, value, role))
    triage = load_triage(connection, list(entities)) if entities else {}
    return [
        represent_triaged_incident(
            row,
            represent_entities(sorted(entities[row["number"]])),
            triage.get(row["number"]),
            public_url=public_url,
        )
        for row in rows
    ]
