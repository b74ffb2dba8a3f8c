"""Write-back to alerts and cases: comments and status.

Tocsin writes a comment to a case, and a note to an alert. Kibana renders both as Markdown, so the
text is put into a code block.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import quote

from tocsin import Api, Broken, IncidentStatus, Refused, TryLater
from tocsin_connectors.siem.elastic.client import CASES, OWNER
from tocsin_connectors.siem.elastic.mapping import ALERT_STATUSES, CASE_STATUSES, STATUSES
from tocsin_connectors.siem.idempotency_marker import (
    add_marker,
    fence_text,
    has_marker,
    read_comments,
)
from tocsin_connectors.siem.records import children, number, text

NOTE = "/api/note"
STATUS = "/api/detection_engine/signals/status"
_CONFLICT, _ATTEMPTS, _PAGE = 409, 3, 100


class ElasticWriteBack:
    """Writes comments and statuses to one Kibana space."""

    def __init__(self, kibana: Api) -> None:
        self._kibana = kibana

    async def comment_on_case(self, identifier: str, text: str, key: str) -> None:
        """Write a comment to a case, unless one with this key exists."""
        path = f"{_build_case_path(identifier)}/comments"
        async for comment in self._comments(path):
            if has_marker(key, [comment]):
                return
        content = {"type": "user", "owner": OWNER, "comment": add_marker(fence_text(text), key)}
        await self._kibana.request("POST", path, json=content)

    async def comment_on_alert(self, identifier: str, text: str, key: str) -> None:
        """Write a note to an alert, unless one with this key exists."""
        answer = await self._kibana.get(NOTE, documentIds=identifier)
        if not isinstance(answer.json, dict) or not isinstance(answer.json.get("notes"), list):
            raise Broken(f"GET {NOTE} returned a response without `notes`")
        own = (
            child for child in children(answer.json, "notes") if child.get("eventId") == identifier
        )
        if not has_marker(key, read_comments(own, "note")):
            note = {
                "eventId": identifier,
                "note": add_marker(fence_text(text), key),
                "timelineId": "",
            }
            await self._kibana.request("PATCH", NOTE, json={"note": note})

    async def set_status_of_alert(self, identifier: str, status: IncidentStatus) -> None:
        """Set the status of an alert. Kibana ignores an unchanged status."""
        change = {"signal_ids": [identifier], "status": ALERT_STATUSES[status]}
        answer = await self._kibana.request("POST", STATUS, json=change)
        if not isinstance(answer.json, dict) or number(answer.json, "total") is None:
            raise Broken(f"POST {STATUS} returned a response without `total`")
        if not answer.json["total"]:
            raise Refused(f"the alert {identifier} does not exist")

    async def set_status_of_case(self, identifier: str, status: IncidentStatus) -> None:
        """Set the status of a case, and retry if someone else changes it meanwhile."""
        for _ in range(_ATTEMPTS):
            case = (await self._kibana.get(_build_case_path(identifier))).json
            if not isinstance(case, dict) or not (version := text(case, "version")):
                raise Broken(f"GET {CASES} returned a case without `version`")
            if STATUSES.get((text(case, "status") or "").casefold()) is status:
                return
            if await self._patch_case(identifier, version, CASE_STATUSES[status]):
                return
        raise TryLater(f"the case {identifier} is being changed concurrently")

    async def _patch_case(self, identifier: str, version: str, status: str) -> bool:
        change = {"id": identifier, "version": version, "status": status}
        try:
            await self._kibana.request("PATCH", CASES, json={"cases": [change]})
        except Refused as refused:
            if refused.status == _CONFLICT:
                return False
            raise
        return True

    async def _comments(self, path: str) -> AsyncIterator[str]:
        """Yield the comments of a case, newest first."""
        page = 1
        while True:
            query: Mapping[str, Any] = {"page": page, "perPage": _PAGE, "sortOrder": "desc"}
            answer = await self._kibana.get(f"{path}/_find", **query)
            body = answer.json if isinstance(answer.json, dict) else {}
            total = number(body, "total")
            if total is None or not isinstance(body.get("comments"), list):
                raise Broken(f"GET {path}/_find returned a response without `comments` and `total`")
            for comment in read_comments(children(body, "comments"), "comment"):
                yield comment
            if page * _PAGE >= total:
                return
            page += 1


def _build_case_path(identifier: str) -> str:
    return f"{CASES}/{quote(identifier, safe='')}"
