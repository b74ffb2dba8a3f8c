"""Permission check of an app on a Sentinel workspace."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from tocsin import Clock, Window
from tocsin_connectors.microsoft.resources import READ_PERMISSIONS, find_missing_actions
from tocsin_connectors.siem.permissions import PermissionProbe, find_refused
from tocsin_connectors.siem.sentinel.client import SentinelClient, WorkspaceLogs

READ_INCIDENTS = "Microsoft.SecurityInsights/incidents/read"
QUERY_LOGS = "Microsoft.OperationalInsights/workspaces/query/read"
WRITE_COMMENTS = "Microsoft.SecurityInsights/incidents/comments/write"
WRITE_INCIDENTS = "Microsoft.SecurityInsights/incidents/write"


_RECENT = timedelta(minutes=1)


class SentinelPermissionCheck:
    """Permissions of an app, found with test requests or, for writes, by its roles."""

    def __init__(self, workspace: SentinelClient, logs: WorkspaceLogs, clock: Clock) -> None:
        """Store the dependencies. Performs no I/O."""
        self._workspace = workspace
        self._logs = logs
        self._clock = clock

    async def problems(self, writes: Sequence[str]) -> list[str]:
        """Return the missing permissions, including `writes`. Raises any error but a refusal."""
        tried: dict[str, PermissionProbe] = {READ_INCIDENTS: self._read, QUERY_LOGS: self._query}
        if writes:
            tried[READ_PERMISSIONS] = self._workspace.roles
        found = await find_refused(tried)
        if writes and READ_PERMISSIONS not in found:
            found += find_missing_actions(await self._workspace.roles(), writes)
        return [f"the app lacks the permission {action}" for action in found]

    async def _read(self) -> None:
        """Send all read requests for an incident, if there is one."""
        if incident := await self._workspace.first():
            name = str(incident.get("name"))
            await self._workspace.alerts(name)
            await self._workspace.entities(name)

    async def _query(self) -> None:
        now = self._clock.now()
        await self._logs.run("print Tocsin = 1", Window(now - _RECENT, now))
