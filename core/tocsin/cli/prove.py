"""`tocsin prove`: accounts for a period."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from typing import Annotated, Any

import typer
from pydantic import TypeAdapter, ValidationError
from sqlalchemy import Connection

from tocsin import accounting
from tocsin.cli.database import run_on_database
from tocsin.cli.emergency_stops import describe_past_stop
from tocsin.cli.marks import Mark
from tocsin.cli.output import AsJson, Columns, Wide, print_json, print_marked, print_records
from tocsin.clock import SystemClock
from tocsin.errors import OperatorError
from tocsin.fields import Duration
from tocsin.settings import load_settings
from tocsin.store import Database, HeadFile, identify_location, parse_url, require_writable

_COLUMNS = Columns(("part", "what", "at", "detail"))
_COUNTERS = {"intervals": "interval", "records": "record", "new": "new", "rejected": "rejected"}
"""Counters of a source, and the singular of each."""


def prove(
    since: Annotated[
        str,
        typer.Option(
            help="How far back the period goes, such as 24h or 7d. "
            f"Maximum: {accounting.LONGEST_PERIOD.days}d."
        ),
    ] = "24h",
    head: Annotated[
        bool,
        typer.Option(
            "--head",
            help="Check only whether the database is older than the state recorded in "
            "`head.json` in the data directory.",
        ),
    ] = False,
    as_json: AsJson = False,
    wide: Wide = False,
) -> None:
    """Account for everything read and delivered in a period.

    Lists coverage, failed reads and undelivered events with their reasons, as well as everything
    that is unaccounted for. Also checks whether the database is older than the state that a node
    last recorded on this machine (in `head.json` in the data directory).

    Exit status: 0 if everything is accounted for, 1 if anything is unaccounted for, 2 if the report
    cannot be created, 3 if the database is unavailable or does not accept writes.
    """
    settings, now = load_settings(), SystemClock().now()
    period = accounting.Period(now - _parse_since(since), now)
    file = HeadFile(settings.data_dir, identify_location(parse_url(settings.database)))

    def account(connection: Connection) -> dict[str, Any]:
        proof = accounting.report_period(connection, period, now)
        return proof | {
            "unaccounted": proof["unaccounted"] + accounting.load_rollbacks(connection, file)
        }

    work = partial(accounting.report_head, file=file) if head else account

    async def prove_writable(database: Database) -> dict[str, Any]:
        await require_writable(database)
        return await database.read(work)

    proof = run_on_database(settings, prove_writable)
    if as_json:
        print_json(proof)
    else:
        records = list(_head_records(proof) if head else _records(proof))
        print_records(records, _COLUMNS, as_json=False, wide=wide)
    count = len(proof["unaccounted"])
    if count:
        print_marked(Mark.BAD, f"unaccounted for: {count}", file=sys.stderr)
        raise typer.Exit(1)
    print_marked(Mark.GOOD, "everything is accounted for", file=sys.stderr)


def _parse_since(text: str) -> timedelta:
    adapter: TypeAdapter[timedelta] = TypeAdapter(Duration)
    try:
        duration = adapter.validate_python(text)
    except ValidationError as error:
        reason = error.errors()[0]["msg"]
        raise OperatorError(f"--since: found {text!r}; {reason}") from None
    if not timedelta(0) < duration <= accounting.LONGEST_PERIOD:
        raise OperatorError(
            f"--since: found {text!r}; use a duration from 1s to {accounting.LONGEST_PERIOD.days}d"
        )
    return duration


def _records(proof: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the rows of the account, section by section.

    The sections are coverage with failed reads, incidents, emergency stops, triage, remote
    statuses, events, followed changes, destinations, undelivered events and anomalies
    (UNACCOUNTED). In a section, rows keep the order in which `accounting.report_period` returns
    them: sources and destinations by name, undelivered events by time (oldest first), anomalies by
    kind.
    """
    yield from _coverage_records(proof)
    for name, count in proof["incidents"].items():
        yield _record("incidents", name, None, count)
    yield _record("incidents", "quarantined records", None, proof["quarantined"])
    for waiting in proof["waiting_pushes"]:
        numbers = f"intake numbers {waiting['stored'] + 1} to {waiting['accepted']}"
        yield _record("waiting pushes", waiting["provider"], waiting["since"], numbers)
    for stop in proof["stops"]:
        name = f"{stop['kind']}:{stop['name']}"
        yield _record("emergency stop", name, stop["since"], describe_past_stop(stop))
    yield from _triage_records(proof["triage"])
    yield from _remote_records(proof)
    for name, count in proof["events"].items():
        yield _record("events", name, None, count)
    for name, count in proof["changes"].items():
        if count:
            yield _record("changes", name, None, count)
    for counts in proof["destinations"]:
        states = (f"{count} {state}" for state, count in counts.items() if state != "destination")
        yield _record("destination", counts["destination"], None, ", ".join(states))
    yield from _undelivered_records(proof)
    yield from _unaccounted_records(proof)


def _remote_records(proof: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for summary in proof["remote_statuses"]:
        counts = f"objects: {summary['objects']}, mismatches: {summary['mismatches']}"
        detail = f"{counts}, not read: {summary['reason']}" if summary["reason"] else counts
        yield _record("remote statuses", summary["destination"], summary["failing_since"], detail)
    for name, count in proof["siem_closures"].items():
        if count:
            yield _record("SIEM closures", name, None, count)


def _triage_records(triage: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for author in triage["authors"]:
        detail = f"changes: {author['changes']}, incidents: {author['incidents']}"
        yield _record("triage", f"{author['by']} ({author['actor']})", None, detail)
    for name, count in triage["dispositions"].items():
        if count:
            yield _record("triage", name, None, count)


def _unaccounted_records(proof: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for item in proof["unaccounted"]:
        detail = f"{item['kind']}: {item['detail']}"
        yield _record("UNACCOUNTED", item["what"], item["since"], detail)


def _head_records(report: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for epoch in report["epochs"]:
        detail = f"starts at incident {epoch['first_number']}"
        named = f"{detail}: {epoch['reason']}" if epoch["reason"] else detail
        yield _record("epoch", epoch["number"], epoch["started_at"], named)
    yield _record("head", "database", None, _describe_head(report["database"]))
    for stored in report["stored"]:
        yield _record("head", stored["location"], stored["stored_at"], _describe_head(stored))
    yield from _unaccounted_records(report)


def _describe_head(head: dict[str, Any]) -> str:
    return (
        f"epoch {head['epoch']}, incident {head['incident_number']}, "
        f"change {head['incident_change']}"
    )


def _coverage_records(proof: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for source in proof["coverage"]:
        counts = (_format_count(source[name], name) for name in _COUNTERS)
        detail = f"{source['from']} to {source['to']}: {', '.join(counts)}"
        name = f"{source['provider']}/{source['stream']} {source['source']}"
        yield _record("coverage", name, source["read_at"], detail)
    for failure in proof["failures"]:
        since = "recovered" if failure["read_since"] else "not recovered"
        detail = f"{failure['outcome']} from {failure['from']}, {since}: {failure['reason']}"
        name = f"{failure['provider']}/{failure['stream']}"
        yield _record("failure", name, failure["to"], detail)


def _format_count(count: int, several: str) -> str:
    return f"{count} {_COUNTERS[several] if count == 1 else several}"


def _undelivered_records(proof: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for delivery in proof["not_arrived"]:
        due = f"next attempt at {delivery['due_at']}" if delivery["due_at"] else None
        tried = f"attempts: {delivery['attempts']}"
        parts = filter(None, (delivery["state"], delivery["reason"], tried, due))
        name = f"{delivery['destination']} {delivery['id']} {delivery['subject']}"
        yield _record("not delivered", name, delivery["timestamp"], ", ".join(parts))
    more = proof["not_arrived_total"] - len(proof["not_arrived"])
    if more > 0:
        yield _record("not delivered", f"and {more} more", None, None)


def _record(part: str, what: object, at: str | None, detail: object) -> dict[str, Any]:
    return {"part": part, "what": what, "at": at, "detail": detail}
