"""Incidents and time window that an investigation starts from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from tocsin import (
    GetIncidents,
    IncidentRecord,
    InvestigationFailed,
    ListIncidents,
    Match,
    QueryOutcome,
    SearchHistory,
    Severity,
    Statement,
    Window,
)
from tocsin_plugins.investigator.case import CaseFile
from tocsin_plugins.investigator.collection.query_client import BoundedQueryClient
from tocsin_plugins.investigator.interpretation import InvestigationScope
from tocsin_plugins.investigator.phrases import WAS, count_noun, join_names, name_incidents, state
from tocsin_plugins.investigator.settings import Settings

_EARLIEST = datetime(1970, 1, 2, tzinfo=UTC)


def choose_window(
    scope: InvestigationScope, named: Sequence[IncidentRecord], now: datetime, settings: Settings
) -> Window:
    """Return the time range of the messages, or around the incidents, or the latest one."""
    if scope.window:
        return scope.window
    if not named:
        return Window(now - settings.default_window, now)
    moments = [moment for record in named for moment in _moments(record)]
    end = max(min(max(moments) + settings.around_incidents, now), _EARLIEST + timedelta(days=1))
    start = max(min(moments), _EARLIEST) - min(settings.around_incidents, timedelta(days=1))
    start = max(start, end - settings.longest_window)
    return Window(start, end) if start < end else Window(end - settings.longest_window, end)


def _moments(record: IncidentRecord) -> list[datetime]:
    return [record.occurred_at, *(alert.occurred_at for alert in record.alerts)]


_Told = tuple[IncidentRecord, str]


@dataclass(frozen=True, slots=True)
class NamedIncidents:
    """The incidents that the messages name."""

    scope: InvestigationScope
    """The scope without incidents that do not exist."""
    records: tuple[IncidentRecord, ...] = ()
    gaps: tuple[Statement, ...] = ()
    """Notes on the missing incidents."""


async def load_named_incidents(
    client: BoundedQueryClient, scope: InvestigationScope
) -> NamedIncidents:
    """Return the incidents that the messages name, up to the bound.

    Incidents named only in an earlier message or a range may be missing. Raises InvestigationFailed
    if another one does not exist, or none can be read.
    """
    if not scope.incidents or scope.nothing_left:
        return NamedIncidents(scope)
    most = client.bounds.incidents
    numbers, beyond = scope.incidents[:most], scope.incidents[most:]
    answer = await client.ask(GetIncidents(numbers=numbers))
    if answer.outcome is not QueryOutcome.ANSWERED:
        raise InvestigationFailed(f"the incidents could not be read: {answer.reason}")
    records = answer.content or ()
    missing = sorted({*numbers} - {record.number for record in records})
    _refuse(scope, missing, records)
    gaps = [state(f"{_name_missing(missing)} not exist", answer.step)] if missing else []
    if beyond:
        number = f"{len(beyond):,} more of the specified incidents ({beyond[0]} to {beyond[-1]})"
        text = f"{number} {WAS[len(beyond) == 1]} not examined"
        bound = count_noun(most, "incident")
        gaps.append(state(f"{text}, because the limit is {bound}", answer.step))
    kept = scope.without_incidents({*missing, *beyond})
    return NamedIncidents(kept, tuple(records), tuple(gaps))


def _refuse(
    scope: InvestigationScope, missing: Sequence[int], records: Sequence[IncidentRecord]
) -> None:
    """Raise InvestigationFailed if the last message names missing incidents."""
    wanted = [number for number in missing if number in scope.latest]
    if refused := [number for number in wanted if number not in scope.within or not records]:
        raise InvestigationFailed(f"{_name_missing(refused)} not exist")


def _name_missing(numbers: Sequence[int]) -> str:
    return f"{name_incidents(numbers)} {'does' if len(numbers) == 1 else 'do'}"


async def add_matching_incidents(
    client: BoundedQueryClient, case: CaseFile, provider: str | None, session_id: str
) -> None:
    """Add the incidents that match the words of the messages, or without words, the time window.

    If words match nothing, no incidents are added. The current session matches its own words, and
    is left out.
    """
    scope = case.scope
    if scope.words or scope.techniques:
        await _add_matching(client, case, provider)
    case.matches = [
        pair for pair in case.matches if (pair[0].kind, pair[0].id) != ("session", session_id)
    ]
    if scope.words or scope.techniques:
        return
    question = ListIncidents(
        window=case.window,
        provider=provider,
        min_severity=scope.severity or Severity.INFORMATIONAL,
        limit=client.bounds.incidents + 1,
    )
    answer = await client.ask(question)
    add_bounded_incidents(client, case, [(record, answer.step) for record in answer.content or ()])


def add_bounded_incidents(
    client: BoundedQueryClient, case: CaseFile, found: Sequence[_Told]
) -> None:
    """Add incidents, the newest first, up to the bound; note the rest as a gap."""
    newest = sorted(found, key=lambda pair: (pair[0].occurred_at, pair[0].number), reverse=True)
    fresh = {
        record.number: (record, step)
        for record, step in newest
        if record.number not in case.incidents and record.number not in case.scope.ignored_incidents
    }
    room = max(client.bounds.incidents - len(case.incidents), 0)
    for record, _ in list(fresh.values())[:room]:
        case.add_incident(record)
    if left := list(fresh.values())[room:]:
        number = count_noun(len(left), "more matching incident")
        text = f"at least {number} {WAS[len(left) == 1]}"
        bound = count_noun(client.bounds.incidents, "incident")
        evidence = {step for _, step in left}
        case.gaps.append(state(f"{text} not examined, because the limit is {bound}", *evidence))


async def _add_matching(client: BoundedQueryClient, case: CaseFile, provider: str | None) -> None:
    """Add the incidents that match all words, or else those that match most of them."""
    scope = case.scope
    texts = [*([" ".join(scope.words)] if scope.words else []), *scope.techniques]
    found = await _matches(client, case, texts)
    if not found and len(scope.words) > 1:
        found = await _matches(client, case, scope.words)
        if found:
            words = join_names(scope.words, 10)
            text = (
                f"no incident matches all of the words {words}, but some incidents match at least "
                "one of them"
            )
            case.gaps.append(state(text, client.last_step))
    numbers = [int(id_) for id_ in found if id_.isdecimal()][: client.bounds.incidents]
    if not numbers:
        return
    answer = await client.ask(GetIncidents(numbers=tuple(numbers)))
    fitting = [
        (record, answer.step)
        for record in answer.content or ()
        if _is_meant(case, record, provider)
    ]
    add_bounded_incidents(client, case, fitting)


async def _matches(client: BoundedQueryClient, case: CaseFile, texts: Sequence[str]) -> list[str]:
    """Return the IDs of the matching incidents, those that match most texts first."""
    times: dict[str, int] = {}
    for answer in await client.ask_all([SearchHistory(text=text) for text in texts]):
        for match in answer.content or ():
            _remember(case, match, answer.step)
            if match.kind == "incident":
                times[match.id] = times.get(match.id, 0) + 1
    return sorted(times, key=lambda number: -times[number])


def _remember(case: CaseFile, match: Match, step: str) -> None:
    if all((match.kind, match.id) != (known.kind, known.id) for known, _ in case.matches):
        case.matches.append((match, step))


def _is_meant(case: CaseFile, record: IncidentRecord, provider: str | None) -> bool:
    scope = case.scope
    return (
        (provider is None or record.provider == provider)
        and (scope.window is None or record.occurred_at in scope.window)
        and (scope.severity is None or record.severity.rank >= scope.severity.rank)
    )
