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
    """Return problems with creating and finding records.

    Raises `CredentialsRefused` if the account is not allowed to read the table. Only writing could
    test write access.
    """
    table = tracker.settings.project
    problems = list(_settings(tracker))
    if not _TABLE.fullmatch(table):
        problems.append(_missing_table(table))
        return Health(detail="no further checks were made", problems=tuple(problems))
    try:
        await tracker.correlated(_NOBODY)
    except CredentialsRefused:
        raise
    except Misconfigured as refused:
        problems.append(f"project: {refused}")
    problems += [problem async for problem in _close_code(tracker)]
    wanted = await _mandatory(tracker)
    return Health(
        detail=f"{table} is readable; write access was not tested{wanted}",
        problems=tuple(problems),
    )


def _missing_table(name: str) -> str:
    return f"project: {name!r} is not a table name; use a name such as incident or sn_si_incident"


def _settings(tracker: ServiceNow) -> Iterator[str]:
    settings = tracker.settings
    if settings.labels:
        yield "labels: ServiceNow does not support labels; remove the setting, or use `fields`"
    if settings.issue_type:
        yield "issue_type: ServiceNow does not support types; set fields.category instead"
    for severity, word in settings.priorities.items():
        if "/" in word and not all(word.split("/", 1)):
            yield f"priorities.{severity}: use impact/urgency, such as 2/1, or a priority"
    if _closes(tracker) and not tracker.options.close_code:
        yield "options.close_code: set it, because most instances require it to close a record"


def _closes(tracker: ServiceNow) -> bool:
    return tracker.settings.close_when is not None or tracker.settings.close_recovered


async def _close_code(tracker: ServiceNow) -> AsyncIterator[str]:
    named = {
        f"options.close_as.{disposition}": closure.code
        for disposition, closure in tracker.options.close_as.items()
    }
    wanted = {"options.close_code": tracker.options.close_code, **named}
    codes = {option: code for option, code in wanted.items() if code}
    if not codes:
        return
    query = f"nameIN{tracker.settings.project},task^element=close_code^inactive=false"
    values = {
        str(choice.get("value")) for choice in await _listed(tracker, "sys_choice", query, "value")
    }
    for option, code in codes.items():
        if values and code not in values:
            known = ", ".join(sorted(values))
            yield f"{option}: unknown code {code!r}; use one of: {known}"


async def _mandatory(tracker: ServiceNow) -> str:
    """Return the fields that are mandatory in forms, although the API does not enforce them."""
    query = f"nameIN{tracker.settings.project},task^mandatory=true^active=true"
    fields = await _listed(tracker, "sys_dictionary", query, "element")
    names = sorted({str(field.get("element")) for field in fields} - set(tracker.settings.fields))
    return f"; mandatory in forms: {', '.join(names)}" if names else ""


async def _listed(tracker: ServiceNow, table: str, query: str, field: str) -> list[dict[str, Any]]:
    """Return the records that match a query; none if the account is not allowed to read them."""
    asked = {"sysparm_query": query, "sysparm_fields": field, "sysparm_limit": _MOST}
    try:
        return expect_objects(
            await tracker.ask("GET", f"/api/now/table/{table}", query=asked), "result"
        )
    except Refused:
        return []
