"""`tocsin investigations`: start, follow and read investigations."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Any

import orjson
import typer
from sqlalchemy import Connection

from tocsin import investigations, reports
from tocsin.cli.database import record, run_on_database, whoami
from tocsin.cli.options import choice_option
from tocsin.cli.output import (
    AsJson,
    Columns,
    Wide,
    print_json,
    print_line,
    print_progress,
    print_records,
    print_text,
)
from tocsin.cli.providers import configured_providers
from tocsin.clock import SystemClock
from tocsin.errors import OperatorError
from tocsin.fields import LONGEST_QUERY
from tocsin.hookspecs import Investigator
from tocsin.model import Persona, Report, SessionStatus
from tocsin.observables import Environment
from tocsin.registry import (
    LivePlugins,
    PluginFactory,
    load_configuration,
    start_investigation_plugins,
)
from tocsin.settings import Settings, load_settings
from tocsin.store import Database
from tocsin.validation import suggest_provider

app = typer.Typer(no_args_is_help=True, help="Start, follow and read investigations.")

SessionId = Annotated[str, typer.Argument(metavar="ID", help="ID of the investigation.")]
Detach = Annotated[bool, typer.Option("--detach", help="Print the ID and exit without waiting.")]

_COLUMNS = Columns(
    (
        "id",
        "status",
        "persona",
        "provider",
        "risk_score",
        "verdict",
        "finding_count",
        "entity_count",
        "title",
        "error",
        "created_at",
    ),
    brief=("id", "status", "verdict", "risk_score", "title", "error"),
)
_STEPS = Columns(
    (
        "number",
        "run",
        "phase",
        "kind",
        "asked_of",
        "outcome",
        "duration_ms",
        "conclusion",
        "reason",
    ),
    brief=("number", "phase", "kind", "outcome", "conclusion", "reason"),
)
_ACTIVE = {SessionStatus.QUEUED.value, SessionStatus.RUNNING.value}
_POLL_INTERVAL = timedelta(seconds=0.5)
_HINT_AFTER = timedelta(seconds=15)
_NOT_STARTED = (
    "the investigation is still queued; make sure that a node with the role `investigate` is "
    "running"
)


class ReportFormat(StrEnum):
    """Format of a report."""

    MARKDOWN = "markdown"
    HTML = "html"
    JSON = "json"
    TEXT = "text"


_WRITERS: dict[ReportFormat, Callable[[Report, Mapping[str, str]], str]] = {
    ReportFormat.MARKDOWN: reports.to_markdown,
    ReportFormat.HTML: reports.to_html,
    ReportFormat.JSON: lambda report, _: _json(reports.to_json(report)),
    ReportFormat.TEXT: reports.to_plain_text,
}


@app.command()
def start(
    query: Annotated[
        str, typer.Argument(metavar="QUESTION", help="Question to investigate, in plain language.")
    ],
    *,
    persona: Annotated[
        Persona,
        choice_option(
            Persona,
            help="Audience of the report. Also determines how deep the investigation goes.",
        ),
    ] = Persona.ANALYST,
    provider: Annotated[
        str | None,
        typer.Option(help="Investigate only data from this provider. Default: all providers."),
    ] = None,
    detach: Detach = False,
    as_json: AsJson = False,
) -> None:
    """Start an investigation and print its report.

    The service runs the investigation, and the command waits until the investigation ends. To stop
    waiting, press Ctrl+C. The service continues the investigation.

    Exit status: 0 if the investigation completed or has not ended yet; 1 if it failed or was
    cancelled.
    """
    settings = load_settings()
    _require_text(query, "QUESTION")
    _require_provider(settings, provider)

    def create(connection: Connection) -> str:
        now = SystemClock().now()
        made = investigations.create_session(
            connection, query=query, persona=persona, provider=provider, by=whoami(), now=now
        )
        details = {"persona": persona.value, "provider": provider}
        record(connection, now, "investigation.start", target=f"session:{made}", details=details)
        return made

    _print_session(settings, create, detach=detach, as_json=as_json)


@app.command()
def message(
    session_id: SessionId,
    text: Annotated[str, typer.Argument(metavar="MESSAGE", help="Follow-up question.")],
    *,
    detach: Detach = False,
    as_json: AsJson = False,
) -> None:
    """Ask a follow-up question and print the new report.

    Exit status: 0 if the investigation completed or has not ended yet; 1 if it failed or was
    cancelled.
    """
    _require_text(text, "MESSAGE")

    def send(connection: Connection) -> str:
        _find(connection, session_id)
        now = SystemClock().now()
        investigations.add_message(connection, session_id, text, whoami(), now)
        record(connection, now, "session.message", target=f"session:{session_id}")
        return session_id

    _print_session(load_settings(), send, detach=detach, as_json=as_json)


@app.command()
def cancel(session_id: SessionId) -> None:
    """Cancel a queued or running investigation.

    Has no effect on an investigation that has ended.
    """

    def end(connection: Connection) -> None:
        now = SystemClock().now()
        if _find(connection, session_id)["status"] in _ACTIVE:
            record(connection, now, "session.cancel", target=f"session:{session_id}")
        investigations.cancel_session(connection, session_id, now)

    run_on_database(load_settings(), lambda database: database.write(end))


@app.command("list")
def list_(
    status: Annotated[
        SessionStatus | None,
        choice_option(SessionStatus, help="Only investigations with this status."),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="Maximum number of rows.")] = 50,
    as_json: AsJson = False,
    wide: Wide = False,
) -> None:
    """List the newest investigations."""
    settings = load_settings()

    def find(connection: Connection) -> investigations.SessionPage:
        return investigations.list_sessions(
            connection, public_url=settings.public_url, limit=limit, status=status
        )

    page = run_on_database(settings, lambda database: database.read(find))
    print_records(page.sessions, _COLUMNS, as_json=as_json, wide=wide)


@app.command()
def report(
    session_id: SessionId,
    form: Annotated[
        ReportFormat | None,
        choice_option(
            ReportFormat,
            "--format",
            help="Format of the report. Default: text on a terminal, markdown elsewhere.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print the latest report of an investigation."""
    chosen = ReportFormat.JSON if as_json else form or _choose_format()
    text = run_on_database(
        load_settings(), lambda database: database.read(_write_report, session_id, chosen)
    )
    print_text(text.rstrip("\n"))


def _choose_format() -> ReportFormat:
    """Return the format that suits standard output."""
    return ReportFormat.TEXT if sys.stdout.isatty() else ReportFormat.MARKDOWN


def _write_report(connection: Connection, session_id: str, form: ReportFormat) -> str:
    found = investigations.load_report(connection, session_id)
    if found is None:
        raise OperatorError(
            f"no report for investigation {session_id!r}: the ID is unknown, or no run has "
            "completed"
        )
    return _WRITERS[form](found, investigations.describe_steps(connection, session_id))


@app.command()
def steps(
    session_id: SessionId,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="Maximum number of rows.")] = 5_000,
    as_json: AsJson = False,
    wide: Wide = False,
) -> None:
    """List the queries, outcomes and conclusions of an investigation."""

    def find(connection: Connection) -> investigations.StepPage:
        _find(connection, session_id)
        return investigations.list_steps(connection, session_id, limit=limit)

    page = run_on_database(load_settings(), lambda database: database.read(find))
    print_records(page.steps, _STEPS, as_json=as_json, wide=wide)


@app.command()
def replay(session_id: SessionId, as_json: AsJson = False) -> None:
    """Replay an investigation from its ledger and compare results.

    The ledger records every query and its outcome, so the replay does not query any source again.
    If the results differ, the investigator, its settings or the ledger changed.

    Exit status: 0 if the result is the same, 1 if it differs.
    """
    settings = load_settings()
    replayed = run_on_database(settings, lambda database: _replay(settings, database, session_id))
    if as_json:
        print_json({"identical": replayed.is_same, "difference": replayed.difference or None})
    else:
        print_text("identical" if replayed.is_same else replayed.difference)
    if not replayed.is_same:
        raise typer.Exit(1)


async def _replay(
    settings: Settings, database: Database, session_id: str
) -> investigations.ReplayResult:
    await database.read(_find, session_id)
    live = LivePlugins()
    try:
        investigator = await _make_investigator(settings, live)
        return await investigations.replay_session(database, session_id, investigator)
    finally:
        await live.close()


async def _make_investigator(settings: Settings, live: LivePlugins) -> Investigator:
    """Return only the investigator; a replay needs no enrichers and no other secrets."""
    configuration = await load_configuration(
        settings.plugins_file,
        templates_dir=settings.templates_dir,
        sections=("investigator", "environment"),
    )
    environment = Environment(configuration.environment)
    maker = PluginFactory(SystemClock(), settings.public_url, environment)
    await start_investigation_plugins(replace(configuration, enrichers=()), maker, live)
    if live.investigator is None:
        raise OperatorError("no investigator is available; run `tocsin check` for the reason")
    return live.investigator


def _print_session(
    settings: Settings, begin: Callable[[Connection], str], *, detach: bool, as_json: bool
) -> None:
    """Begin a run, wait until it ends and print its report; with `detach`, print only the ID."""
    session = run_on_database(settings, lambda database: _begin(settings, database, begin, detach))
    if as_json:
        print_json(session)
    elif detach:
        print_text(session["id"])
    elif session["status"] == SessionStatus.COMPLETED:
        form = _choose_format()
        text = run_on_database(
            settings, lambda database: database.read(_write_report, session["id"], form)
        )
        print_text(text.rstrip("\n"))
    else:
        print_line(f"{session['status']}: {session['error'] or session['id']}", file=sys.stderr)
    if session["status"] in {SessionStatus.FAILED, SessionStatus.CANCELLED}:
        raise typer.Exit(1)


async def _begin(
    settings: Settings, database: Database, begin: Callable[[Connection], str], detach: bool
) -> dict[str, Any]:
    session_id = await database.write(begin)

    found, waited = await database.read(_find, session_id), timedelta(0)
    while found["status"] in _ACTIVE and not detach:
        await asyncio.sleep(_POLL_INTERVAL.total_seconds())
        waited += _POLL_INTERVAL
        found = await database.read(_find, session_id)
        _show(found, waited)
    load, url = investigations.load_session, settings.public_url
    loaded = await database.read(load, session_id, public_url=url)
    return investigations.render_session(loaded) if loaded else found


def _show(found: dict[str, Any], waited: timedelta) -> None:
    if waited == _HINT_AFTER and found["status"] == SessionStatus.QUEUED:
        print_text(_NOT_STARTED, file=sys.stderr)
    progress = found["progress"]
    status = f"{progress['phase'] or found['status']}, queries: {progress['asked']}"
    print_progress(f"{status:<40}", end="" if found["status"] in _ACTIVE else "\n")


def _find(connection: Connection, session_id: str) -> dict[str, Any]:
    found = investigations.find_session(connection, session_id, public_url="")
    if found is None:
        raise OperatorError(f"no investigation with ID {session_id!r}")
    return found


def _require_text(text: str, name: str) -> None:
    """Raise OperatorError if a text is empty or too long."""
    if not text.strip():
        raise OperatorError(f"{name}: found empty text; enter a question")
    if len(text) > LONGEST_QUERY:
        raise OperatorError(
            f"{name}: found {len(text):,} characters; use at most {LONGEST_QUERY:,}"
        )


def _require_provider(settings: Settings, name: str | None) -> None:
    if name is None:
        return
    known = sorted(facts.name for facts in configured_providers(settings))
    if name not in known:
        raise OperatorError(f"--provider: found {name!r}; {suggest_provider(name, known)}")


def _json(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
