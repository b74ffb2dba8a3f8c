"""Quarantine: records that could not be parsed, and how to read them again."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from tocsin.clock import isoformat
from tocsin.hookspecs import Capability
from tocsin.incidents import PUSH_STREAM
from tocsin.web.console.forms import Form, to_number
from tocsin.web.console.page_request import PageRequest, select_query
from tocsin.web.console.pages import ConsoleAction, ConsolePage
from tocsin.web.routes.providers import list_backfills, list_providers
from tocsin.web.routes.quarantine import (
    get_quarantined_record,
    list_quarantine,
    retry_quarantined_record,
    retry_quarantined_records,
)
from tocsin.web.schemas.quarantine import RetryOutcome

_MARGIN = timedelta(hours=1)
"""How long before its rejection a backfill starts if the time of a record is unknown."""
_AROUND = timedelta(minutes=1)
"""How far a backfill reaches around the time in the content of a record."""


async def show_quarantine(request: PageRequest) -> Mapping[str, Any]:
    """Return one page of the quarantined records."""
    query, cursor = select_query(request, "provider"), select_query(request, "cursor")
    providers = (await request.ask(list_providers, {}))["providers"]
    retried = to_number(request.query.get(RetryOutcome.RETRIED, ""))
    return {
        "found": await request.ask(list_quarantine, {}, **query, **cursor),
        "query": query,
        "page_query": {**query, **cursor},
        "retried": retried if isinstance(retried, int) else 0,
        "providers": [provider["name"] for provider in providers],
    }


async def show_record(request: PageRequest) -> Mapping[str, Any]:
    """Return a record, the range to backfill, and the backfills that have read it again."""
    record = await request.ask(get_quarantined_record)
    name = record["provider"]
    providers = (await request.ask(list_providers, {}))["providers"]
    capabilities = next((each["capabilities"] for each in providers if each["name"] == name), None)
    backfills = await request.ask(list_backfills, {}, provider=name, limit="200")
    start, end = _choose_range(record, request.services.clock.now())
    first = record["from"] or record["recorded_at"]
    last = record["to"] or record["recorded_at"]
    return {
        "record": record,
        "is_configured": capabilities is not None,
        "can_backfill": Capability.BACKFILL in (capabilities or ()),
        "is_pushed": record["stream"] == PUSH_STREAM,
        "backfill": {"provider": name, "from": start, "to": end},
        "retries": [
            backfill
            for backfill in backfills["backfills"]
            if first is not None
            and backfill["created_at"] > record["created_at"]
            and backfill["from"] <= first
            and last <= backfill["to"]
        ],
    }


def _choose_range(record: Mapping[str, Any], now: datetime) -> tuple[str, str]:
    """Return the range of the read, else one around the record's time or before its rejection."""
    if record["from"] is not None:
        return record["from"], record["to"]
    if record["recorded_at"] is not None:
        moment = datetime.fromisoformat(record["recorded_at"])
        return isoformat(moment - _AROUND), isoformat(min(moment + _AROUND, now))
    rejected_at = datetime.fromisoformat(record["created_at"])
    return isoformat(rejected_at - _MARGIN), isoformat(rejected_at)


def _read_selected(form: Form) -> Mapping[str, Any]:
    return {"records": [to_number(text) for text in form.several.get("record", ())]}


def _count_results(content: Any) -> Mapping[str, str] | None:
    """Return the number of retried records, None if a retry was refused."""
    outcomes = [result["outcome"] for result in content["results"]]
    is_complete = set(outcomes) == {RetryOutcome.RETRIED}
    return {RetryOutcome.RETRIED.value: str(len(outcomes))} if is_complete else None


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
ACTIONS = (
    ConsoleAction(
        path="/quarantine/retry",
        handler=retry_quarantined_records,
        page="/quarantine",
        message="",
        body=_read_selected,
        count_results=_count_results,
    ),
    ConsoleAction(
        path="/quarantine/{record_id}/retry",
        handler=retry_quarantined_record,
        page="/quarantine/{record_id}",
        message="Record retried. Tocsin has stored its incidents.",
    ),
)
