"""Health of a node's plugin objects, as its own code observes it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from math import inf
from operator import itemgetter


@dataclass(frozen=True, slots=True)
class _Defect:
    reason: str
    until: float


class PluginHealth:
    """Defects of plugin objects that work nevertheless, by the path of their table.

    `providers.edge` is an object, `plugins.acme` a plugin as a whole.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._defects: dict[tuple[str, str], _Defect] = {}
        self.describe_stalls: Callable[[float], str | None] = lambda _since: None
        """Returns who has held the event loop since a time by the monotonic clock, if anyone."""

    def follow(self) -> None:
        """Collect what this task, and the tasks that it creates, observe from now on."""
        _HEALTH.set(self)

    def mark(
        self, path: str, defect: str, reason: str, *, lasting: timedelta | None = None
    ) -> bool:
        """Mark a plugin object as degraded; return whether it did not have the defect before."""
        now, before = self._monotonic(), self._defects.get((path, defect))
        until = inf if lasting is None else now + lasting.total_seconds()
        self._defects[path, defect] = _Defect(reason, until)
        return before is None or before.until <= now

    def clear(self, path: str, defect: str) -> bool:
        """Remove a defect; return whether there was one."""
        return self._defects.pop((path, defect), None) is not None

    def forget(self, path: str) -> None:
        """Remove the defects of an object that this node no longer uses."""
        for key in [key for key in self._defects.copy() if key[0] == path]:
            self._defects.pop(key, None)

    @property
    def degraded(self) -> Mapping[str, str]:
        """Why each degraded object is degraded, by path."""
        now = self._monotonic()
        found: dict[str, str] = {}
        for (path, _), defect in sorted(self._defects.copy().items(), key=itemgetter(0)):
            if now < defect.until:
                found[path] = f"{found[path]}; {defect.reason}" if path in found else defect.reason
        return found


_HEALTH: ContextVar[PluginHealth] = ContextVar("plugin_health")


def get_plugin_health() -> PluginHealth:
    """Return the collection of this node; a new one outside of a node."""
    return _HEALTH.get(None) or PluginHealth()
