"""Timeline of incidents, alerts and events, within the bound on its lines."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from tocsin import Entity, Statement, TimelineEntry
from tocsin_plugins.investigator.case import CaseFile
from tocsin_plugins.investigator.evidence import SeenEvent, entity_sort_key
from tocsin_plugins.investigator.narrative import describe_severity
from tocsin_plugins.investigator.phrases import (
    format_time,
    join_entities,
    shorten,
    sort_references,
    state,
)

_ACCOUNTS = 3
"""Maximum number of an incident's own events quoted in its line."""
_Ranked = tuple[int, TimelineEntry]


def build_timeline(case: CaseFile, most: int) -> tuple[tuple[TimelineEntry, ...], int]:
    """Return the lines, the earliest first, and the number of omitted ones.

    Incidents take precedence over alerts, alerts over events with signs, and those over the rest.
    """
    ranked = sorted(
        [*_incidents(case), *_alerts(case), *_events(case)],
        key=lambda ranked: (ranked[0], _order(ranked[1])),
    )
    kept = sorted((moment for _, moment in ranked[:most]), key=_order)
    return tuple(kept), max(len(ranked) - most, 0)


def _incidents(case: CaseFile) -> Iterator[_Ranked]:
    for record in case.records:
        title = shorten(record.title) or "untitled"
        text = f"incident {record.number} ({describe_severity(record)}) began: {title}"
        accounts = case.find_own_events(record)
        quotes = dict.fromkeys(shorten(seen.event.summary, 200) for seen in accounts)
        quoted = "".join(f"; “{quote}”" for quote in [*quotes][:_ACCOUNTS] if quote)
        yield (
            0,
            TimelineEntry(
                at=record.occurred_at,
                statement=state(
                    f"{text}{quoted}",
                    f"incident:{record.number}",
                    *(account.step for account in accounts),
                ),
                severity=record.severity,
                source=f"provider:{record.provider}",
            ),
        )


def _alerts(case: CaseFile) -> Iterator[_Ranked]:
    for record in case.records:
        for alert in record.alerts:
            if (alert.title, alert.occurred_at) == (record.title, record.occurred_at):
                continue  # the line of the incident covers it
            text = f"alert in incident {record.number}: {shorten(alert.title)}"
            yield (
                1,
                TimelineEntry(
                    at=alert.occurred_at,
                    statement=state(text, f"incident:{record.number}"),
                    severity=alert.severity,
                    source=f"provider:{record.provider}",
                ),
            )


def _events(case: CaseFile) -> Iterator[_Ranked]:
    """Yield a line for each series of consecutive events with the same text and entities."""
    for (provider, summary, entities), run in groupby(case.events, key=_sameness):
        same = list(run)
        text = shorten(summary, 200) or "an event without a summary"
        untold = [
            entity
            for entity in sorted(entities, key=entity_sort_key)
            if entity.value.lower() not in summary.lower()
        ]
        text = f"{text} (involves {join_entities(untold)})" if untold else text
        if len(same) > 1:
            text = f"{text} ({len(same)} times, until {format_time(same[-1].event.occurred_at)})"
        line = TimelineEntry(
            at=same[0].event.occurred_at,
            statement=Statement(text, tuple(sort_references(seen.step for seen in same))),
            source=f"provider:{provider}",
        )
        yield (2 if same[0].signs else 3, line)


def _sameness(seen: SeenEvent) -> tuple[str, str, frozenset[Entity]]:
    return seen.provider, seen.event.summary, frozenset(seen.event.entities)


def _order(moment: TimelineEntry) -> tuple[object, ...]:
    return moment.at, moment.source, moment.statement.text, moment.statement.evidence
