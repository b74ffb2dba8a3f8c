"""Quarantine: records that could not be parsed, and how to read them again."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from tocsin.hookspecs import Capability
from tocsin.web.console.page_request import PageRequest, select_query
from tocsin.web.console.pages import ConsoleAction, ConsolePage
from tocsin.web.routes.providers import list_backfills, list_providers
from tocsin.web.routes.quarantine import get_quarantined_record, list_quarantine

_MARGIN = timedelta(hours=1)
"""How long before its rejection a backfill starts if the time of a record is unknown."""


async def show_quarantine(request: PageRequest) -> Mapping[str, Any]:
    """Return one page of the quarantined records."""
    query, cursor = select_query(request, "provider"), select_query(request, "cursor")
    providers = (await request.ask(list_providers, {}))["providers"]
    return {
        "found": await request.ask(list_quarantine, {}, **query, **cursor),
        "query": query,
        "providers": [provider["name"] for provider in providers],
    }


async def show_record(request: PageRequest) -> Mapping[str, Any]:
    """Return a record, the range to backfill, and the backfills that have read it again."""
    record = await request.ask(get_quarantined_record)
    name = record["provider"]
    providers = (await request.ask(list_providers, {}))["providers"]
    capabilities = next((each["capabilities"] for each in providers if each["name"] == name), None)
    backfills = await request.ask(list_backfills, {}, provider=name, limit="200")
    rejected_at = datetime.fromisoformat(record["created_at"])
    start = record["from"] or rejected_at - _MARGIN
    end = record["to"] or rejected_at
    return {
        "record": record,
        "is_configured": capabilities is not None,
        "can_backfill": Capability.BACKFILL in (capabilities or ()),
        "is_pushed": Capability.PUSH in (capabilities or ()),
        "backfill": {"provider": name, "from": start, "to": end},
        "retries": [
            backfill
            for backfill in backfills["backfills"]
            if record["from"] is not None
            and backfill["created_at"] > record["created_at"]
            and backfill["from"] <= record["from"]
            and record["to"] <= backfill["to"]
        ],
    }


PAGES = (
    ConsolePage(
        path="/quarantine",
        view=show_quarantine,
        template="quarantine.html.j2",
        section="providers",
    ),
    ConsolePage(
        path="/quarantine/{record_id}",
        view=show_record,
        template="quarantined_record.html.j2",
        section="providers",
    ),
)
ACTIONS: tuple[ConsoleAction, ...] = ()
