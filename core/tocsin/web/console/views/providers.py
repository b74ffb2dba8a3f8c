"""Providers and backfills."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tocsin.credentials import ConsoleRole
from tocsin.hookspecs import Capability
from tocsin.web.console.coverage_bar import CoverageBar, build_coverage_bars
from tocsin.web.console.coverage_calendar import WEEKS, build_calendars
from tocsin.web.console.forms import Form, to_utc
from tocsin.web.console.page_request import PageRequest, select_query
from tocsin.web.console.pages import ConsoleAction, ConsolePage
from tocsin.web.console.stop_form import STOP_LENGTHS, read_stop
from tocsin.web.problems import ProblemError
from tocsin.web.routes.accounting import get_proof
from tocsin.web.routes.providers import (
    cancel_backfill,
    create_backfill,
    list_backfills,
    list_providers,
    update_provider,
)

_SECTION = "providers"


async def show_providers(request: PageRequest) -> Mapping[str, Any]:
    """Return the providers with their coverage, and the backfills."""
    proof = await request.ask(get_proof)
    providers = (await request.ask(list_providers))["providers"]
    cursor = select_query(request, "cursor")
    return {
        "proof": proof,
        "providers": [_with_reading(provider, proof) for provider in providers],
        "backfills": await request.ask(list_backfills, {}, limit="20", **cursor),
        "lengths": STOP_LENGTHS,
        "stopping": request.path.get("provider"),
        "can_backfill": [provider["name"] for provider in providers if _reads_the_past(provider)],
    }


def _with_reading(provider: Mapping[str, Any], proof: Mapping[str, Any]) -> dict[str, Any]:
    name = provider["name"]
    strips: list[CoverageBar] = build_coverage_bars(proof, [provider])
    return {
        **provider,
        "strips": strips,
        "sources": _select_provider(name, proof["coverage"]),
        "gaps": [
            *({**gap, "kind": "gap"} for gap in _select_provider(name, proof["gaps"])),
            *({**gap, "kind": "lost"} for gap in _select_provider(name, proof["lost"])),
        ],
        "silent": _select_provider(name, proof["silent"]),
    }


def _select_provider(name: str, parts: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [part for part in parts if part["provider"] == name]


def _reads_the_past(provider: Mapping[str, Any]) -> bool:
    return Capability.BACKFILL in provider["capabilities"]


async def show_coverage(request: PageRequest) -> Mapping[str, Any]:
    """Return the coverage calendars of a provider; raises ProblemError (404) without it."""
    name = request.path["name"]
    for provider in (await request.ask(list_providers))["providers"]:
        if provider["name"] == name:
            proof = await request.ask(get_proof, None, timespan=f"P{7 * WEEKS}D")
            return {
                "provider": provider,
                "calendars": build_calendars(proof, provider),
                "can_backfill": _reads_the_past(provider),
            }
    raise ProblemError(404, f"There is no provider {name!r} in plugins.toml.")


async def show_new_backfill(request: PageRequest) -> Mapping[str, Any]:
    """Return the backfill form with the values in the query."""
    providers = (await request.ask(list_providers))["providers"]
    return {
        "providers": [provider["name"] for provider in providers if _reads_the_past(provider)],
        "asked": {name: request.query.get(name, "") for name in ("provider", "from", "to")},
    }


def _backfill(form: Form) -> Mapping[str, Any]:
    return {
        "provider": form.text("provider"),
        "from": to_utc(form.text("from")),
        "to": to_utc(form.text("to")),
        "alert": form.text("alert") == "yes",
    }


PAGES = (
    ConsolePage(
        path="/providers",
        view=show_providers,
        template="providers.html.j2",
        section=_SECTION,
        is_live=True,
    ),
    ConsolePage(
        path="/providers/{name}/coverage",
        view=show_coverage,
        template="coverage.html.j2",
        section=_SECTION,
    ),
    ConsolePage(
        path="/admin/new-backfill",
        view=show_new_backfill,
        template="new_backfill.html.j2",
        section=_SECTION,
        role=ConsoleRole.OPERATOR,
    ),
)
ACTIONS = (
    ConsoleAction(
        path="/providers/{provider}/stop",
        handler=update_provider,
        page="/providers",
        body=read_stop,
        message="Provider disabled. Tocsin does not read from the provider and rejects its pushes.",
    ),
    ConsoleAction(
        path="/providers/{provider}/start",
        handler=update_provider,
        page="/providers",
        body=lambda _: {"enabled": True},
        message="Provider enabled. Reads resume where they left off.",
    ),
    ConsoleAction(
        path="/admin/new-backfill",
        handler=create_backfill,
        page="/admin/new-backfill",
        after="/providers",
        body=_backfill,
        message="Backfill started.",
    ),
    ConsoleAction(
        path="/backfills/{backfill_id}/cancel",
        handler=cancel_backfill,
        page="/providers",
        message="Backfill cancelled.",
    ),
)
