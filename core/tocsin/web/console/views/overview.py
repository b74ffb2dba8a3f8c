"""Overview."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tocsin.store import DatabaseFault
from tocsin.web.console.coverage_bar import build_coverage_bars
from tocsin.web.console.page_request import PageRequest
from tocsin.web.console.pages import ConsoleAction, ConsolePage
from tocsin.web.console.trend_chart import draw_trend
from tocsin.web.console.views.destinations import load_all_destinations
from tocsin.web.routes.accounting import get_proof
from tocsin.web.routes.incidents import get_incident_trend, list_incidents
from tocsin.web.routes.providers import list_providers
from tocsin.web.routes.schedules import list_schedules, list_upcoming_runs
from tocsin.web.routes.service import get_readiness


async def show_overview(request: PageRequest) -> Mapping[str, Any]:
    """Return the status of this node, and of providers, destinations and schedules."""
    readiness = await request.ask(get_readiness)
    # no user sees more of it than another
    account = await request.services.shared_results.load("overview", lambda: _account(request))
    return {
        **account,
        "readiness": readiness,
        "database_fault": readiness["fault"] and DatabaseFault(readiness["fault"]),
    }


async def _account(request: PageRequest) -> Mapping[str, Any]:
    request = replace(request, is_shared=True)
    now = request.services.clock.now()
    proof = await request.ask(get_proof)
    providers = (await request.ask(list_providers))["providers"]
    destinations = await load_all_destinations(request)
    schedules = await request.ask(list_schedules, status="disabled", limit="20")
    upcoming = await request.ask(list_upcoming_runs, limit="200")
    counts = {each["destination"]: each for each in proof["destinations"]}
    return {
        "loaded_at": now,
        "open_incidents": [
            (words, filters, await request.ask(list_incidents, {}, limit="1", **filters))
            for words, filters in _OPEN.items()
        ],
        "trend": draw_trend((await request.ask(get_incident_trend))["hours"]),
        "proof": proof,
        "providers": providers,
        "strips": build_coverage_bars(proof, providers),
        "destinations": [
            {**destination, **_counts(counts.get(destination["name"]))}
            for destination in destinations
        ],
        "disabled": schedules["schedules"],
        "disabled_total": schedules["total"],
        "upcoming": upcoming,
        "replica_age": max(request.ages, default=None),
    }


_OPEN = {
    "new {}": {"status": "New"},
    "critical {} without a disposition": {"severity": "Critical", "disposition": "none"},
    "new and unassigned {}": {"status": "New", "assignee": "none"},
}
"""Filters of the incidents that the overview counts."""


def _counts(found: Mapping[str, Any] | None) -> dict[str, int]:
    states = ("delivered", "pending", "on_hold", "dead")
    return {state: found[state] if found else 0 for state in states}


PAGES = (
    ConsolePage(
        path="/",
        view=show_overview,
        template="overview.html.j2",
        section="overview",
        is_live=True,
    ),
)
ACTIONS: tuple[ConsoleAction, ...] = ()
