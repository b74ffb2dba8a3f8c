"""Health check of a ServiceNow table."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any

from tocsin import CredentialsRefused, Health, Misconfigured, Refused
from tocsin_plugins.ticketing.http_tracker import expect_objects

if TYPE_CHECKING:
    from tocsin_plugins.ticketing.servicenow.tracker import ServiceNow

_TABLE = re.compile(r"[a-z][a-z0-9_]*")
_NOBODY = "tocsin-check"
_MOST = 200


async def find_problems(tracker: ServiceNow) -> Health:
    """Return what keeps records from being made and found again.

    Raises `CredentialsRefused` where the account may not read the table. Whether it may write there
    is told by nothing but writing.
    """
    table = tracker.settings.project
    problems = list(_settings(tracker))
    if not _TABLE.fullmatch(table):
        return Health(
            detail="ServiceNow was asked nothing", problems=(*problems, _missing_table(table))
        )
    try:
        await tracker.correlated(_NOBODY)
    except CredentialsRefused:
        raise
    except Misconfigured as refused:
        problems.append(f"project: {refused}")
    problems += [it async for it in _close_code(tracker)]
    wanted = await _mandatory(tracker)
    return Health(
        detail=f"{table} can be read; whether records may be made, only making one shows{wanted}",
        problems=tuple(problems),
    )


def _missing_table(name: str) -> str:
    return f"project: {name!r} is no table; give its name, such as incident or sn_si_incident"


def _settings(tracker: ServiceNow) -> Iterator[str]:
    settings = tracker.settings
    if settings.labels:
        yield "labels: records of ServiceNow have none; use `fields`"
    if settings.issue_type:
        yield "issue_type: records of ServiceNow have none; set fields.category"
    for severity, word in settings.priorities.items():
        if "/" in word and not all(word.split("/", 1)):
            yield f"priorities.{severity}: give impact/urgency, such as 2/1, or one priority"
    if _closes(tracker) and not tracker.options.close_code:
        yield "options.close_code: give one; without it most instances let nobody close a record"


def _closes(tracker: ServiceNow) -> bool:
    return tracker.settings.close_when is not None or tracker.settings.close_recovered


async def _close_code(tracker: ServiceNow) -> AsyncIterator[str]:
    code = tracker.options.close_code
    if not code:
        return
    query = f"nameIN{tracker.settings.project},task^element=close_code^inactive=false"
    values = {str(it.get("value")) for it in await _listed(tracker, "sys_choice", query, "value")}
    if values and code not in values:
        known = ", ".join(sorted(values))
        yield f"options.close_code: there is no {code!r}; give one of: {known}"


async def _mandatory(tracker: ServiceNow) -> str:
    """Return what people have to fill in there, which the API does not ask for by itself."""
    query = f"nameIN{tracker.settings.project},task^mandatory=true^active=true"
    fields = await _listed(tracker, "sys_dictionary", query, "element")
    names = sorted({str(field_.get("element")) for field_ in fields} - set(tracker.settings.fields))
    return f"; people have to fill in {', '.join(names)}" if names else ""


async def _listed(tracker: ServiceNow, table: str, query: str, field: str) -> list[dict[str, Any]]:
    """Return the records that a query finds; nothing where the account may not read them."""
    asked = {"sysparm_query": query, "sysparm_fields": field, "sysparm_limit": _MOST}
    try:
        return expect_objects(
            await tracker.ask("GET", f"/api/now/table/{table}", query=asked), "result"
        )
    except Refused:
        return []
