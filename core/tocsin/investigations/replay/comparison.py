"""Replay of a session and comparison with its stored report."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from tocsin.errors import InvestigationFailed
from tocsin.hookspecs import Investigator
from tocsin.investigations.codec import encode_report, normalize_report
from tocsin.investigations.replay.client import LedgerExhausted, RecordedQueryClient, ReplayDiverged
from tocsin.investigations.replay.record import RecordedRun, SessionRecord, load_session_record
from tocsin.loops import PLUGIN_FAILURES, was_cancelled
from tocsin.model import Report
from tocsin.store import Database

_NOTHING = object()


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """The result of replaying a session."""

    difference: str | None
    """The first difference; None if there is none."""
    report: Report | None
    """The report of the last completed run in this replay; None if no run completed."""

    @property
    def is_same(self) -> bool:
        """Whether the replay equals the recording."""
        return self.difference is None


async def replay_session(
    database: Database, session_id: str, investigator: Investigator
) -> ReplayResult:
    """Replay a session from its ledger, and return the first difference, if any.

    A run that did not complete is compared as far as its ledger goes. Raises NotFoundError
    if the session does not exist, and ConflictError while it is active.
    """
    record = await database.read(load_session_record, session_id)
    report: Report | None = None
    for run in record.runs:
        try:
            report = await _replay_run(investigator, record, run, report)
        except ReplayDiverged as different:
            return ReplayResult(f"run {run.number}: {different}", report)
    return ReplayResult(_compare_reports(record, report), report)


async def _replay_run(
    investigator: Investigator, record: SessionRecord, run: RecordedRun, previous: Report | None
) -> Report | None:
    """Return the report of a run, or the previous one if the run did not complete."""
    client = RecordedQueryClient(run.steps, run.first)
    report, error = None, None
    try:
        report = normalize_report(
            await investigator.investigate(record.inquiry(run, previous), client)
        )
    except PLUGIN_FAILURES as raised:
        if was_cancelled():
            raise
        error = client.error or raised
    if isinstance(client.error, ReplayDiverged):
        raise client.error
    if client.error is None:
        client.check_end()
    if not run.has_completed:
        return previous
    if error is not None:
        raise ReplayDiverged(_describe_error(error))
    return report


def _describe_error(error: BaseException) -> str:
    if isinstance(error, LedgerExhausted):
        return str(error)
    if isinstance(error, InvestigationFailed):
        return f"the investigation fails: {error}"
    return f"the investigation fails: {error!r:.500}"


def _compare_reports(record: SessionRecord, report: Report | None) -> str | None:
    """Return the first difference between the report of the last run and the stored one."""
    again = None if report is None else encode_report(report)
    return next(_differences("report", record.report, again), None)


def _differences(place: str, then: Any, now: Any) -> Iterator[str]:
    match then, now:
        case dict(), dict():
            for name in sorted(then.keys() | now.keys()):
                values = then.get(name, _NOTHING), now.get(name, _NOTHING)
                yield from _differences(f"{place}.{name}", *values)
        case list(), list():
            for index, values in enumerate(zip_longest(then, now, fillvalue=_NOTHING)):
                yield from _differences(f"{place}[{index}]", *values)
        case _ if then != now:
            yield f"{place} was {_format_value(then)} and is {_format_value(now)}"


def _format_value(value: Any) -> str:
    return "nothing" if value is _NOTHING else f"{value!r:.200}"
