"""Incidents: list and detail page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from tocsin.accounting import MAX_INVESTIGATIONS
from tocsin.credentials import list_saved_views
from tocsin.events import RESTORED
from tocsin.incidents import UNTRIAGED, IncidentOrder
from tocsin.model import (
    DispositionFilter,
    IncidentDisposition,
    IncidentStatus,
    Persona,
    Severity,
)
from tocsin.reports import draw_timeline
from tocsin.web.console.forms import Form, to_number, to_utc
from tocsin.web.console.page_request import PageRequest, select_period, select_query
from tocsin.web.console.pages import ConsoleAction, ConsolePage
from tocsin.web.console.views.history import build_history
from tocsin.web.console.views.investigations import read_question
from tocsin.web.problems import ProblemError
from tocsin.web.routes.accounting import get_incident_trace
from tocsin.web.routes.alerts import list_alerts
from tocsin.web.routes.enrichment import enrich_incident
from tocsin.web.routes.incident_context import get_incident_context
from tocsin.web.routes.incidents import get_incident, list_incidents
from tocsin.web.routes.sessions import start_investigation
from tocsin.web.routes.triage import (
    create_comment,
    list_comments,
    update_incident,
    update_incidents,
)
from tocsin.web.schemas.incidents import parse_timespan
from tocsin.web.schemas.triage import TriageOutcome

_ONE = "/incidents/{number}"
_ALERTS = 5
"""Alerts on the page of an incident; their records may be long."""
_COMMENTS = "comments"
"""Query parameter with the cursor of older comments."""
_FILTERS = (
    *("severity", "status", "provider", "timespan", "title", "entity", "technique"),
    "occurred",
    *("assignee", "disposition", "acknowledged", "tag", "watcher", "sort"),
)
_COLUMNS = {
    "severity": "Severity",
    "status": "Status",
    "assignee": "Assignee",
    "disposition": "Disposition",
    "provider": "Provider",
    "entities": "Entities",
    "techniques": "Techniques",
    "tags": "Tags",
    "alerts": "Alerts",
    "occurred": "Occurred",
    "updated": "Updated",
}
_TIME_COLUMNS = ("updated", "occurred")
_USUAL_COLUMNS = ("severity", "status", "assignee", "disposition", "provider", "alerts")
_STORED = (TriageOutcome.UPDATED, TriageOutcome.UNCHANGED)
"""Outcomes of a bulk change; the query parameter of each contains its number of incidents."""
_LABELS = tuple(
    f"{verb}_{kind}" for verb in ("add", "remove") for kind in ("tags", "links", "watchers")
)
_TIMESPANS = {
    "PT1H": "last hour",
    "PT24H": "last 24 hours",
    "P7D": "last 7 days",
    "P30D": "last 30 days",
}
_ORDERS = {
    IncidentOrder.CHANGED.value: "last updated",
    IncidentOrder.OCCURRED.value: "last occurred",
    IncidentOrder.SEVERITY.value: "most severe",
}


def _list_views(name: str) -> Mapping[str, Mapping[str, str]]:
    """Return the filters of the predefined views for a user."""
    return {
        "All": {},
        "New": {"status": "New"},
        "Unassigned": {"assignee": "none"},
        "Mine": {"assignee": name},
        "Not acknowledged": {"acknowledged": "false"},
        "Without a disposition": {"disposition": "none"},
        "Most severe": {"sort": IncidentOrder.SEVERITY.value, "disposition": "none"},
    }


async def show_incidents(request: PageRequest) -> Mapping[str, Any]:
    """Return one page of incidents, by default most recently updated first."""
    filters = select_query(request, *_FILTERS) | select_period(request)
    cursor = select_query(request, "cursor")
    columns = _read_columns(request)
    layout = {"columns": ",".join(columns)} if columns else {}
    is_by_occurrence = filters.get("sort") == IncidentOrder.OCCURRED
    return {
        "page": await request.ask(list_incidents, {}, **_fix_period(request, filters), **cursor),
        "chosen": filters,
        "layout": layout,
        "triaged": _read_results(request),
        "untriaged": UNTRIAGED,
        "columns": columns or (*_USUAL_COLUMNS, _TIME_COLUMNS[is_by_occurrence]),
        "column_names": _COLUMNS,
        "is_first": not cursor,
        "severities": list(reversed(Severity)),
        "statuses": list(IncidentStatus),
        "timespans": _TIMESPANS,
        "dispositions": list(DispositionFilter),
        "settable": list(IncidentDisposition),
        "providers": sorted(each.name for each in request.services.providers),
        "orders": _ORDERS,
        "views": _list_views(request.user.principal.name),
        "saved": await request.services.database.lookup(
            list_saved_views, request.user.session.principal
        ),
        "query": {**filters, **layout, **cursor},
    }


def _fix_period(request: PageRequest, filters: Mapping[str, str]) -> dict[str, str]:
    """Return the filters of the API; raises ProblemError (422) if `occurred` is no duration."""
    fixed = dict(filters)
    if duration := fixed.pop("occurred", None):
        try:
            since = request.services.clock.now() - parse_timespan(duration)
        except ValueError as error:
            raise ProblemError(422, f"The filter `occurred` is not valid: {error}") from None
        start = to_utc(since.isoformat())
        fixed["since"] = max(start, fixed.get("since", start))
    return fixed


def _read_columns(request: PageRequest) -> tuple[str, ...]:
    """Return the chosen columns in their order, none if they are the usual ones."""
    given = ",".join(request.http.query.getall("columns", [])).split(",")
    columns = tuple(name for name in _COLUMNS if name in given)
    return () if columns in {(*_USUAL_COLUMNS, time) for time in _TIME_COLUMNS} else columns


def _count_results(content: Any) -> Mapping[str, str] | None:
    """Return the number of incidents by outcome, None if any change was refused."""
    counts = Counter(result["outcome"] for result in content["results"])
    is_complete = counts.keys() <= set(_STORED)
    return {outcome.value: str(counts[outcome]) for outcome in _STORED} if is_complete else None


def _read_results(request: PageRequest) -> Mapping[str, int] | None:
    """Return the numbers from `_count_results`, None if the query does not contain them."""
    counts = {outcome.value: to_number(request.query.get(outcome, "")) for outcome in _STORED}
    read = {name: count for name, count in counts.items() if isinstance(count, int)}
    return read if len(read) == len(counts) else None


async def show_alerts(request: PageRequest) -> Mapping[str, Any]:
    """Return one page of the alerts of an incident with their records."""
    cursor = select_query(request, "cursor")
    return {
        "incident": await request.ask(get_incident),
        "alerts": await request.ask(list_alerts, None, **cursor),
    }


async def show_incident(request: PageRequest) -> Mapping[str, Any]:
    """Return an incident with its trace, timeline and investigations."""
    answer = await request.answer(get_incident)
    incident: Any = answer.content
    assert answer.version is not None  # noqa: S101 - it is the incident's `change`
    older = {"cursor": request.query[_COMMENTS]} if _COMMENTS in request.query else {}
    trace = await request.ask(get_incident_trace)
    context = await request.ask(get_incident_context)
    alerts = await request.ask(list_alerts, None, limit=str(_ALERTS))
    history = build_history(incident, context["alerts"], trace)
    return {
        "incident": incident,
        "context": context,
        "alerts": alerts,
        "trace": trace,
        "restored": RESTORED,
        "most_investigations": MAX_INVESTIGATIONS,
        "history": history,
        "timeline": draw_timeline(history),
        "personas": list(Persona),
        "triage": incident["triage"] or UNTRIAGED,
        "version": request.services.tags.make(answer.version),
        "comments": await request.ask(list_comments, **older),
        "is_latest": not older,
        "dispositions": list(IncidentDisposition),
    }


def _read_assignee(form: Form) -> Mapping[str, Any]:
    return {"assignee": form.text("assignee") or None}


def _read_acknowledgement(form: Form) -> Mapping[str, Any]:
    return {"acknowledged": form.text("acknowledged") == "true"}


def _read_disposition(form: Form) -> Mapping[str, Any]:
    if disposition := form.text("disposition"):
        reason = form.text("disposition_reason") or None
        return {"disposition": disposition, "disposition_reason": reason}
    return {"disposition": None}


def _read_bulk_change(form: Form) -> Mapping[str, Any]:
    """Return the selected incidents, and the change of all fields that are filled in."""
    change: dict[str, Any] = {}
    if disposition := form.text("disposition"):
        change["disposition"] = None if disposition == DispositionFilter.NONE else disposition
    if assignee := form.text("assignee_me") or form.text("assignee"):
        change["assignee"] = assignee
    if reason := form.text("disposition_reason"):
        change["disposition_reason"] = reason
    if form.text("acknowledged"):
        change["acknowledged"] = True
    if tags := form.text("add_tags"):
        change["add_tags"] = [tag.strip() for tag in tags.split(",") if tag.strip()]
    return {
        "numbers": [to_number(text) for text in form.several.get("number", ())],
        "change": change,
    }


def _read_labels(form: Form) -> Mapping[str, Any]:
    """Return the labels in the fields of a form, each a list separated by commas."""
    texts = {
        name: [text.strip() for text in form.text(name).split(",") if text.strip()]
        for name in _LABELS
        if name in form
    }
    return {
        name: [to_number(text.removeprefix("#")) for text in found] if "link" in name else found
        for name, found in texts.items()
    }


def _read_comment(form: Form) -> Mapping[str, Any]:
    return {"text": form.text("text")}


PAGES = (
    ConsolePage(
        path="/incidents",
        view=show_incidents,
        template="incidents.html.j2",
        section="incidents",
        is_live=True,
    ),
    ConsolePage(
        path=_ONE,
        view=show_incident,
        template="incident.html.j2",
        section="incidents",
        is_live=True,
    ),
    ConsolePage(
        path=f"{_ONE}/alerts", view=show_alerts, template="alerts.html.j2", section="incidents"
    ),
)
_TRIAGE_FORMS: Mapping[str, tuple[Callable[[Form], Mapping[str, Any]], str]] = {
    "assign": (_read_assignee, "Assignee updated."),
    "acknowledge": (_read_acknowledgement, "Acknowledgement updated."),
    "classify": (
        _read_disposition,
        "Disposition updated. The status in the SIEM is unchanged.",
    ),
    "label": (_read_labels, "Incident updated."),
}
ACTIONS = (
    ConsoleAction(
        path="/incidents/triage",
        handler=update_incidents,
        page="/incidents",
        message="",
        body=_read_bulk_change,
        count_results=_count_results,
    ),
    *(
        ConsoleAction(
            path=f"{_ONE}/{name}", handler=update_incident, page=_ONE, message=message, body=body
        )
        for name, (body, message) in _TRIAGE_FORMS.items()
    ),
    ConsoleAction(
        path=f"{_ONE}/comment",
        handler=create_comment,
        page=_ONE,
        message="Comment added.",
        body=_read_comment,
        after=_ONE,
    ),
    ConsoleAction(
        path=f"{_ONE}/enrich",
        handler=enrich_incident,
        page=_ONE,
        message="Enrichment finished. See the results below.",
        keeps=True,
    ),
    ConsoleAction(
        path=f"{_ONE}/investigate",
        handler=start_investigation,
        page=_ONE,
        message="Investigation queued.",
        body=read_question,
        after="/investigations/{session_id}",
    ),
)
