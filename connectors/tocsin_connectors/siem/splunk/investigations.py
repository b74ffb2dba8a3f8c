"""Investigations of Splunk Enterprise Security 8, which group findings.

https://help.splunk.com/en/splunk-enterprise-security-8/api-reference. The list can be limited only
by creation time, so all investigations from the last days are listed, and those that have changed
are returned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

from tocsin import Alert, Api, ApiResponse, Broken, Incident, IncidentStatus, Severity, Window
from tocsin_connectors.siem.records import child, describe_value, texts, union
from tocsin_connectors.siem.splunk.mapping import (
    STATUSES,
    URGENCIES,
    find_entities,
    find_roles,
    first_text,
    parse_id_time,
    parse_time,
)

INVESTIGATIONS = "/servicesNS/nobody/missioncontrol/public/v2/investigations"
PREFIX = "investigation:"
"""Prefix that tells the IDs of investigations from those of findings."""
_MAX_PAGE = 100
_CHANGE_TIMES = ("update_time", "updated_time", "mod_time", "modify_time", "create_time")
"""Members with the time of the last change, by version."""
_PAGE = "/app/SplunkEnterpriseSecuritySuite/incident_review"
_STATUS_WORDS = {
    "unassigned": IncidentStatus.NEW,
    "new": IncidentStatus.NEW,
    "in progress": IncidentStatus.ACTIVE,
    "in_progress": IncidentStatus.ACTIVE,
    "pending": IncidentStatus.ACTIVE,
    "resolved": IncidentStatus.CLOSED,
    "closed": IncidentStatus.CLOSED,
}


@dataclass(frozen=True, slots=True)
class InvestigationPage:
    """Investigations that changed in a window, and the offset of the next page or None."""

    records: Sequence[Mapping[str, Any]]
    following: int | None
    server_time: datetime | None


class InvestigationClient:
    """Requests for investigations. All raise what `Api.request` raises."""

    def __init__(self, api: Api, age: timedelta) -> None:
        """Store the dependencies. Investigations older than `age` are not listed."""
        self._api = api
        self._age = age

    async def changed(self, window: Window, offset: int, limit: int) -> InvestigationPage:
        """Return a page of the investigations that were created or changed in a window."""
        count = min(limit, _MAX_PAGE)
        answer = await self._api.get(
            INVESTIGATIONS,
            create_time_min=int((window.start - self._age).timestamp()),
            create_time_max=int(window.end.timestamp()) + 1,
            limit=count,
            offset=offset,
        )
        records = _parse_list(answer)
        following = offset + len(records) if len(records) >= count else None
        changed = [record for record in records if _is_changed(record, window)]
        return InvestigationPage(changed, following, answer.server_time)

    async def one(self, identifier: str) -> Mapping[str, Any] | None:
        """Return an investigation by its GUID, or None if it does not exist."""
        records = _parse_list(await self._api.get(INVESTIGATIONS, ids=identifier, limit=1))
        return next(
            (one for one in records if first_text(dict(one), "investigation_guid") == identifier),
            None,
        )


def _parse_list(answer: ApiResponse) -> Sequence[Mapping[str, Any]]:
    """Return the investigations in a response, which may be a list or have `items`."""
    content = answer.json.get("items") if isinstance(answer.json, dict) else answer.json
    if not isinstance(content, list) or not all(isinstance(item, dict) for item in content):
        raise Broken(f"GET {INVESTIGATIONS} returned a response without a list of objects")
    return content


def _is_changed(record: Mapping[str, Any], window: Window) -> bool:
    """Return whether an investigation changed in a window. One without a time is taken."""
    try:
        changed_at = parse_change_time(dict(record))
    except ValueError:
        return True
    return changed_at is None or changed_at in window


def parse_change_time(record: dict[str, Any]) -> datetime | None:
    """Return when an investigation last changed, or None. Raises ValueError if it is no time."""
    found = (parse_time(value) for name in _CHANGE_TIMES for value in texts(_numbers(record), name))
    return max(found, default=None)


def build_investigation_path(identifier: str) -> str:
    """Return the path of an investigation by its GUID."""
    return f"{INVESTIGATIONS}/{quote(identifier, safe='')}"


def build_incident(given: Mapping[str, Any], web_url: str | None) -> Incident:
    """Return the incident of an investigation. Its findings are its alerts.

    Raises ValueError if it has no GUID or no creation time.
    """
    record = _numbers(dict(given))
    name, created = first_text(record, "investigation_guid"), first_text(record, "create_time")
    if name is None:
        raise ValueError(f"investigation_guid is {describe_value(given.get('investigation_guid'))}")
    if created is None:
        raise ValueError(f"create_time is {describe_value(given.get('create_time'))}")
    urgency, status = first_text(record, "urgency"), first_text(record, "status")
    severity, created_at = URGENCIES.get((urgency or "").casefold()), parse_time(created)
    number = first_text(record, "investigation_id") or first_text(record, "display_id")
    findings = child(record, "consolidated_findings")
    roles = find_roles(findings)
    word = (status or "").casefold()
    searches = set(texts(findings, "search_name"))  # not in the order of the findings
    return Incident(
        external_id=f"{PREFIX}{name}",
        external_number=number,
        title=first_text(record, "name") or f"Investigation {number or name}",
        description=first_text(record, "description") or "",
        severity=severity or Severity.MEDIUM,
        raw_severity=urgency,
        severity_assumed=severity is None,
        status=STATUSES.get(word) or _STATUS_WORDS.get(word, IncidentStatus.NEW),
        raw_status=status,
        occurred_at=created_at,
        changed_at=parse_change_time(record),
        source_url=web_url and f"{web_url}{_PAGE}",
        entities=union([find_entities(findings)]),
        sources=roles.sources,
        targets=roles.targets,
        alerts=tuple(
            Alert(
                external_id=finding,
                title=f"Finding {finding}",
                severity=severity or Severity.MEDIUM,
                occurred_at=parse_id_time(finding) or created_at,
                rule=next(iter(searches)) if len(searches) == 1 else None,
            )
            for finding in texts(findings, "event_id")
        ),
    )


def _numbers(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record with its numbers as texts: times and statuses may be either."""
    return {
        name: str(value) if type(value) in {int, float} else value for name, value in record.items()
    }
