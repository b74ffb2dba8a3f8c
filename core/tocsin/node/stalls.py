"""Stalls of the event loop, each reported with the plugin that caused it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

import structlog

from tocsin.hookspecs import Channel, Enricher, Intake, Investigator, Provider
from tocsin.loop_monitor import LoopMonitor, Stack, StackFrame, Stall, format_stack
from tocsin.metrics import Metrics
from tocsin.plugin_health import PluginHealth
from tocsin.registry import PluginInventory, table_path

THRESHOLD = 0.25
"""How many seconds a callback must take to count as a stall."""
LOGGED_FROM = 1.0
"""How many seconds one or more stalls must last in total to be logged."""
PERIOD = timedelta(minutes=10)
REPEATS = 3
"""How many logged stalls within `PERIOD` make a plugin degraded."""
_INTERVAL = 0.1
_DEFECT = "event loop"
_SECTIONS = (
    (Provider, "providers", "provider"),
    (Channel, "destinations", "destination"),
    (Enricher, "enrichers", "enricher"),
    (Investigator, "investigator", "investigator"),
    (Intake, "intake", "intake"),
)
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Culprit:
    """The code that held the event loop."""

    path: str | None = None
    """Table of its plugin object, or `plugins.<name>`; None for code of no plugin."""
    plugin: str = ""
    name: str = "code that belongs to no plugin"
    """Its name in the log."""
    place: StackFrame | None = field(default=None, compare=False)
    """Its innermost call."""


@dataclass(slots=True)
class _Record:
    """Stalls of one culprit that are not logged yet, and the times of those that are."""

    seconds: float = 0.0
    times: int = 0
    longest: float = 0.0
    logged_at: deque[float] = field(default_factory=lambda: deque(maxlen=REPEATS))


class StallReporter:
    """Logs and counts the stalls of a node's event loop, and marks plugins that cause several."""

    def __init__(
        self, health: PluginHealth, metrics: Metrics, get_inventory: Callable[[], PluginInventory]
    ) -> None:
        self._health = health
        self._get_inventory = get_inventory
        self._records: dict[Culprit, _Record] = {}
        self._stalls = metrics.counter(
            "tocsin_plugin_stalls_total",
            "Number of times that a plugin or other code blocked the event loop",
            *("plugin", "path"),
        )
        self._seconds = metrics.counter(
            "tocsin_plugin_stall_seconds_total",
            "Total seconds during which a plugin or other code blocked the event loop",
            *("plugin", "path"),
        )
        self._degraded = metrics.gauge(
            "tocsin_plugin_degraded",
            "1 for each degraded plugin; the path names its table in plugins.toml",
            "path",
        )
        self._monitor = LoopMonitor(self._report, threshold=THRESHOLD, interval=_INTERVAL)
        metrics.read_by(self._show_degraded)

    def watch(self) -> LoopMonitor:
        """Return the monitor, which works as a context manager in the thread of the loop."""
        self._health.describe_stalls = self._describe_since
        return self._monitor

    def _report(self, stall: Stall) -> None:
        """Count a stall. It is called in the thread of the monitor."""
        try:
            self._count(stall)
        except Exception:  # noqa: BLE001 - the monitor watches on
            _log.exception("stall of the event loop not reported")

    def _count(self, stall: Stall) -> None:
        for culprit, (seconds, stack) in stall.attribute(self._find_culprit).items():
            if seconds < THRESHOLD:
                continue  # seen in passing
            if not stall.is_over:
                message = f"{culprit.name} holds the event loop"
                _log.warning(message, seconds=round(seconds, 1), **_at(culprit))
                continue
            self._stalls.labels(culprit.plugin, culprit.path or "").inc()
            self._seconds.labels(culprit.plugin, culprit.path or "").inc(seconds)
            record = self._records.setdefault(culprit, _Record())
            record.seconds += seconds
            record.times += 1
            record.longest = max(record.longest, seconds)
            if record.seconds >= LOGGED_FROM:
                self._log(culprit, record, stack)

    def _log(self, culprit: Culprit, record: _Record, stack: Stack) -> None:
        message = f"{culprit.name} held the event loop for {record.seconds:.1f} s"
        _log.warning(message, plugin=culprit.plugin or None, times=record.times, **_at(culprit))
        _log.debug("stack of the event loop", culprit=culprit.name, stack=format_stack(stack))
        record.logged_at.append(time.monotonic())
        if culprit.path is not None and len(record.logged_at) == REPEATS:
            since = timedelta(seconds=record.logged_at[-1] - record.logged_at[0])
            if since <= PERIOD:
                self._mark(culprit.path, culprit, record)
        record.seconds, record.times = 0.0, 0

    def _mark(self, path: str, culprit: Culprit, record: _Record) -> None:
        place = f" in {_place(culprit.place)}" if culprit.place else ""
        reason = f"it held the event loop repeatedly, for up to {record.longest:.1f} s{place}"
        if self._health.mark(path, _DEFECT, reason, lasting=PERIOD):
            _log.warning("plugin degraded", path=path, plugin=culprit.plugin, reason=reason)

    def _describe_since(self, since: float) -> str | None:
        stall = self._monitor.latest
        if stall is None or stall.ended_at < since:
            return None
        found = stall.attribute(self._find_culprit).items()
        culprit, (seconds, _) = max(found, key=lambda item: item[1][0])
        return f"{culprit.name} held the event loop for {seconds:.1f} s"

    def _find_culprit(self, stack: Stack) -> Culprit:
        """Return the innermost plugin on a stack."""
        inventory, place, candidates = self._get_inventory(), None, set[str]()
        for frame in stack:
            if owners := inventory.find_owners(frame.module):
                place, candidates = place or frame, candidates or set(owners)
                if len(candidates) > 1 and len(owners) == 1:
                    candidates &= set(owners)
            if place is not None and (found := _find_table(frame)):
                section, word, instance = found
                plugin = str(getattr(instance.settings, "plugin", ""))
                name = instance.tools.name
                path = table_path(section, name)
                return Culprit(path, plugin, word if path == section else f"{word} {name}", place)
        if place is None:
            return Culprit(place=stack[0] if stack else None)
        plugin = " or ".join(sorted(candidates))
        return Culprit(f"plugins.{plugin}", plugin, f"plugin {plugin}", place)

    async def _show_degraded(self) -> None:
        self._degraded.clear()
        for path in self._health.degraded:
            self._degraded.labels(path).set(1)


def _find_table(frame: StackFrame) -> tuple[str, str, Provider | Channel | Enricher] | None:
    """Return the section, its word and the plugin object whose method a call is."""
    for kind, section, word in _SECTIONS:
        if isinstance(frame.instance, kind):
            return section, word, frame.instance  # type: ignore[return-value]
    return None


def _at(culprit: Culprit) -> dict[str, str]:
    return {"place": _place(culprit.place)} if culprit.place else {}


def _place(frame: StackFrame) -> str:
    return f"{frame.file}:{frame.line} ({frame.function})"
