"""Fast path of the incident list: pages of stored documents, each read by one statement.

`list_pages` builds the same pages from the rows of incidents, as the fallback.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from typing import Any

from sqlalchemy import (
    ColumnElement,
    FromClause,
    ScalarSelect,
    Text,
    bindparam,
    cast,
    exists,
    func,
    literal_column,
    select,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from tocsin.incidents.documents import IS_CURRENT, begin_url
from tocsin.incidents.list_pages import NEWEST, build_conditions, build_version
from tocsin.model import IncidentStatus, Severity
from tocsin.store import INCIDENT_CHANGE, Total, build_bounded_count
from tocsin.store.tables import incident_counts, incident_documents, incidents, sequences


class _Joined(FunctionElement[str]):
    """The texts of all rows in one, separated by commas."""

    name = "joined"
    type = Text()
    inherit_cache = True


@compiles(_Joined)
def _join_in_standard(element: _Joined, compiler: SQLCompiler, **kw: Any) -> str:
    return f"string_agg({compiler.process(element.clauses, **kw)}, ',')"


@compiles(_Joined, "sqlite")
def _join_in_sqlite(element: _Joined, compiler: SQLCompiler, **kw: Any) -> str:
    return f"group_concat({compiler.process(element.clauses, **kw)}, ',')"


@dataclass(frozen=True, slots=True)
class DocumentPageQuery:
    """What a page of documents is selected by, as in `list_incidents`."""

    limit: int
    severity: Severity | None = None
    status: IncidentStatus | None = None
    before: int | None = None
    after: int | None = None

    @property
    def source(self) -> FromClause:
        """The one row to select: the columns that `load_document_page` takes."""
        return _build_source(
            self.severity is not None,
            self.status is not None,
            is_ascending=self.after is not None,
            is_partial=bool(self.after),
        )

    @property
    def state_source(self) -> FromClause | None:
        """The row to select that changes with every page of this query, None if there is none.

        Its columns are the first ones of `source`: every stored change has a number of its own, and
        a removal changes the total.
        """
        if self.after:  # the total is then counted up to a limit, and removals may not change it
            return None
        return _build_state(self.severity is not None, self.status is not None)

    def list_parameters(self, public_url: str) -> dict[str, Any]:
        """Return the parameters of the source, by name."""
        values: dict[str, Any] = {
            "after": self.after or 0,
            "before": self.before or NEWEST,
            "limit": self.limit,
            "url": begin_url(public_url),
        }
        if self.severity is not None:
            values["severity"] = self.severity.value
        if self.status is not None:
            values["status"] = self.status.value
        return values


@dataclass(frozen=True, slots=True)
class DocumentPage:
    """One page of a list as `IncidentPage`, with the JSON of its incidents."""

    documents: str
    """The JSON of the incidents, separated by commas."""
    total: int
    exact: bool
    next: int | None
    resume: int
    version: str


def load_document_page(query: DocumentPageQuery, row: Sequence[Any]) -> DocumentPage | None:
    """Return the page in a row, None where the documents are not all there or the cursor is wrong.

    The incidents then have to be read as such.
    """
    newest, counted, rows, valid, first, last, documents, has_more = row
    if valid != rows or (query.after or 0) > newest:
        return None
    total = Total.of(counted)
    is_ascending = query.after is not None
    end: int = (last if is_ascending else first) if rows else query.after or 0
    return DocumentPage(
        documents or "",
        total.count,
        total.exact,
        next=end if has_more else None,
        resume=end if is_ascending else newest,
        version=build_version(newest, total, (first, last) if rows else (), rows, bool(has_more)),
    )


@cache
def _build_source(
    by_severity: bool, by_status: bool, *, is_ascending: bool, is_partial: bool
) -> FromClause:
    conditions = tuple(build_conditions(by_severity, by_status))
    page = _select_page(conditions, is_ascending=is_ascending)
    beyond = incidents.c.change > page.c.last if is_ascending else incidents.c.change < page.c.first
    if is_partial:
        total = build_bounded_count(incidents, conditions).scalar_subquery()
    else:
        total = _select_total(by_severity, by_status)
    return select(
        _select_newest().label("newest"),
        total.label("total"),
        *page.c,
        exists().where(*conditions, beyond).label("has_more"),
    ).subquery("found")


@cache
def _build_state(by_severity: bool, by_status: bool) -> FromClause:
    total = _select_total(by_severity, by_status)
    return select(_select_newest().label("newest"), total.label("total")).subquery("state")


def _select_newest() -> ScalarSelect[Any]:
    """Return the query for the number of the newest change."""
    is_it = sequences.c.name == literal_column(f"'{INCIDENT_CHANGE}'")
    return select(sequences.c.value).where(is_it).scalar_subquery()


def _select_page(conditions: Iterable[ColumnElement[bool]], *, is_ascending: bool) -> FromClause:
    """Return the query for one row: the documents of a page as text, their counts and bounds."""
    i = incidents.c
    document = select(incident_documents.c.document).where(IS_CURRENT)
    rows = (
        select(i.change, i.number, document.scalar_subquery().label("document"))
        .where(*conditions, i.change < bindparam("before"))
        .order_by(i.change.asc() if is_ascending else i.change.desc())
        .limit(bindparam("limit"))
        .subquery("page_rows")
    )
    parts: Sequence[ColumnElement[str]] = (
        literal_column("'{'", Text),
        rows.c.document,
        literal_column("',\"url\":'", Text),
        bindparam("url", type_=Text),
        cast(rows.c.number, Text),
        literal_column("'\"}'", Text),
    )
    whole = reduce(operator.add, parts)  # concatenates
    return select(
        func.count().label("row_count"),
        func.count(rows.c.document).label("valid_count"),
        func.min(rows.c.change).label("first"),
        func.max(rows.c.change).label("last"),
        _Joined(whole).label("documents"),
    ).subquery("page")


def _select_total(by_severity: bool, by_status: bool) -> ScalarSelect[Any]:
    """Return the query for the number of all incidents of a severity and a status."""
    counts = incident_counts.c
    total = select(cast(func.coalesce(func.sum(counts.count), 0), incidents.c.change.type))
    total = total.select_from(incident_counts)
    if by_severity:
        total = total.where(counts.severity == bindparam("severity"))
    if by_status:
        total = total.where(counts.status == bindparam("status"))
    return total.scalar_subquery()
