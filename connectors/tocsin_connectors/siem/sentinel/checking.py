"""Whether a workspace lets itself be read, asked and written to."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from tocsin import Clock, Window
from tocsin_connectors.microsoft.rights import RIGHTS, lacking
from tocsin_connectors.siem.sentinel.logs import Logs
from tocsin_connectors.siem.sentinel.rights import QUERY, READ
from tocsin_connectors.siem.sentinel.workspace import Workspace
from tocsin_connectors.siem.trying import Trying, refused

_LATELY = timedelta(minutes=1)


class Checking:
    """What an app may do, found out by trying; what cannot be tried harmlessly is asked for."""

    def __init__(self, workspace: Workspace, logs: Logs, clock: Clock) -> None:
        """Keep what is needed; do no I/O."""
        self._workspace = workspace
        self._logs = logs
        self._clock = clock

    async def problems(self, writes: Sequence[str]) -> list[str]:
        """Return what the app may not do, of `writes` as well; raises whatever else is wrong."""
        tried: dict[str, Trying] = {READ: self._read, QUERY: self._query}
        if writes:
            tried[RIGHTS] = self._workspace.roles
        found = await refused(tried)
        if writes and RIGHTS not in found:
            found += lacking(await self._workspace.roles(), writes)
        return [f"the app may not do {it}" for it in found]

    async def _read(self) -> None:
        """Ask for all that is asked of an incident, where there is one."""
        if incident := await self._workspace.first():
            name = str(incident.get("name"))
            await self._workspace.alerts(name)
            await self._workspace.entities(name)

    async def _query(self) -> None:
        now = self._clock.now()
        await self._logs.run("print Tocsin = 1", Window(now - _LATELY, now))
