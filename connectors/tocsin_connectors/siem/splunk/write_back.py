"""Write-back to findings: comments and status.

The finding's ID determines the API. In version 8, IDs end with a time, and findings accept notes.
Any other finding is a notable event, which accepts updates.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from tocsin import Api, Broken, IncidentStatus, Refused
from tocsin_connectors.siem.idempotency_marker import (
    add_marker,
    fence_text,
    has_marker,
    read_comments,
)
from tocsin_connectors.siem.splunk import spl
from tocsin_connectors.siem.splunk.investigations import PREFIX, build_investigation_path
from tocsin_connectors.siem.splunk.jobs import SearchJobs
from tocsin_connectors.siem.splunk.mapping import STATUS_NUMBERS, parse_id_time

UPDATE = "/services/notable_update"
FINDINGS = "/servicesNS/nobody/missioncontrol"
_MAX_NOTES = 100


class SplunkWriteBack:
    """Writes comments and statuses to the findings of one Splunk."""

    def __init__(self, api: Api, jobs: SearchJobs) -> None:
        self._api = api
        self._jobs = jobs

    async def comment(self, identifier: str, text: str, key: str) -> None:
        """Write a comment, unless one with this key exists."""
        if identifier.startswith(PREFIX):
            path = f"{build_investigation_path(identifier.removeprefix(PREFIX))}/notes"
            if not has_marker(key, await self._notes(f"{path}?")):
                note = {"content": add_marker(fence_text(text), key)}
                await self._api.request("POST", path, json=note)
        elif parse_id_time(identifier) is None:
            rows = await self._jobs.all(spl.build_comments_search(identifier))
            if not has_marker(key, read_comments(rows, "comment")):
                await self._update(identifier, comment=add_marker(text, key))
        elif not has_marker(key, await self._notes(f"{_build_notes_path(identifier)}&")):
            note = {"content": add_marker(fence_text(text), key)}
            await self._api.request("POST", _build_notes_path(identifier), json=note)

    async def set_status(self, identifier: str, status: IncidentStatus) -> None:
        """Set the status of a finding or an investigation."""
        if identifier.startswith(PREFIX):
            path = build_investigation_path(identifier.removeprefix(PREFIX))
            await self._api.request("POST", path, json={"status": STATUS_NUMBERS[status]})
            return
        if parse_id_time(identifier) is None:
            await self._update(identifier, status=STATUS_NUMBERS[status])
            return
        path = f"{FINDINGS}/v1/investigations/{quote(identifier, safe='')}"
        path += _build_time_query(identifier)
        await self._api.request("POST", path, json={"status": STATUS_NUMBERS[status]})

    async def _update(self, identifier: str, **changes: str) -> None:
        form = {"ruleUIDs": identifier, **changes, "output_mode": "json"}
        answer = await self._api.request("POST", UPDATE, form=form)
        match answer.json:
            case {"success": True}:
                return
            case {"success": False, **rest}:
                raise Refused(f"POST {UPDATE}: {rest.get('message')!s:.200}")
        raise Broken(f"POST {UPDATE} returned a response without `success`")

    async def _notes(self, path: str) -> Sequence[str]:
        """Return the latest notes, 100 at most. `path` is that of the notes, open for a query."""
        path = f"{path}limit={_MAX_NOTES}&sort=create_time%3A-1"
        match (await self._api.get(path)).json:
            case {"items": list(items)}:
                notes = [item for item in items if isinstance(item, dict)]
                return list(read_comments(notes, "content"))
        raise Broken(f"GET {path} returned a response without `items`")


def _build_notes_path(identifier: str) -> str:
    name = quote(identifier, safe="")
    return f"{FINDINGS}/public/v2/investigations/{name}/notes{_build_time_query(identifier)}"


def _build_time_query(identifier: str) -> str:
    """Return the time of a finding as a query, which these endpoints require."""
    moment = parse_id_time(identifier)
    return f"?notable_time={int(moment.timestamp())}" if moment else ""
