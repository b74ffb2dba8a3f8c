"""`tocsin providers` and `tocsin coverage`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from tocsin.cli.database import run_on_database
from tocsin.cli.emergency_stops import For, Reason, Until, build_stop
from tocsin.cli.output import AsJson, Columns, Wide, print_record, print_records
from tocsin.cli.provider_read import read_provider
from tocsin.cli.service_api import AdminToken, ApiUrl, admin_path, run_on_api
from tocsin.clock import SystemClock
from tocsin.errors import OperatorError
from tocsin.incidents import (
    ProviderFacts,
    describe_providers,
    list_coverage,
    list_providers,
)
from tocsin.registry import load_configuration, read_plugins_file
from tocsin.settings import Settings, load_settings
from tocsin.validation import suggest_provider

app = typer.Typer(help="List providers with their sync status and last error.")
app.command("read")(read_provider)
Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the provider.")]

_COLUMNS = Columns(
    (
        "name",
        "plugin",
        "state",
        "outcome",
        "reason",
        "failures",
        "read_at",
        "covered_until",
        "next_read_at",
        "clock_skew_seconds",
        "warnings",
    ),
    brief=("name", "state", "outcome", "covered_until", "reason", "warnings"),
)

_DETAILS = ("name", "plugin", "state", "reason", "stop", "read_at", "next_read_at")

_COVERAGE = Columns(
    (
        *("provider", "stream", "source", "from", "to", "outcome", "reason", "pages"),
        *("records", "new", "changed", "rejected", "finished_at", "past"),
    ),
    brief=("provider", "from", "to", "outcome", "new", "reason"),
)


@app.callback(invoke_without_command=True)
def providers(context: typer.Context, as_json: AsJson = False, wide: Wide = False) -> None:
    """List providers with their sync status and last error."""
    if context.invoked_subcommand is not None:
        return
    settings = load_settings()
    facts = configured_providers(settings)
    now = SystemClock().now()
    records = run_on_database(settings, lambda database: database.read(list_providers, facts, now))
    if not as_json:
        records = [
            {
                **record,
                "covered_until": _covered_until(record),
                "warnings": "; ".join(describe_warnings(record)) or None,
            }
            for record in records
        ]
    print_records(records, _COLUMNS, as_json=as_json, wide=wide)


@app.command()
def disable(
    *,
    name: Name,
    until: Until = None,
    lasting: For = None,
    reason: Reason = None,
    url: ApiUrl = None,
    token: AdminToken = None,
    as_json: AsJson = False,
) -> None:
    """Stop reading from a provider until it is enabled again.

    With --until or --for, Tocsin enables the provider automatically. Otherwise, the provider
    stays disabled until someone runs `tocsin providers enable`. While the provider is disabled,
    Tocsin rejects its pushes with status 503, and its backfills wait. When the provider is enabled
    again, Tocsin continues reading where it left off.
    """
    _switch(name, url, token, build_stop(until, lasting, reason), as_json=as_json)


@app.command()
def enable(
    name: Name, url: ApiUrl = None, token: AdminToken = None, as_json: AsJson = False
) -> None:
    """Enable a provider that was disabled manually."""
    _switch(name, url, token, {"enabled": True}, as_json=as_json)


def _switch(
    name: str, url: str | None, token: str | None, body: Mapping[str, Any], *, as_json: bool
) -> None:
    path = admin_path("providers", name)
    record = run_on_api(url, token, lambda api: api.call("PATCH", path, body=body))
    print_record(record, _DETAILS, as_json=as_json)


def configured_providers(settings: Settings) -> list[ProviderFacts]:
    """Return the providers of `plugins.toml`; raises OperatorError if it is invalid."""
    loading = load_configuration(
        settings.plugins_file, templates_dir=settings.templates_dir, sections=("providers",)
    )
    configuration = asyncio.run(loading)
    return describe_providers(configuration, configuration.absent)


def require_known(settings: Settings, name: str) -> None:
    """Raise OperatorError if no provider of this name is configured or has a history."""
    file, _ = read_plugins_file(settings.plugins_file)
    now = SystemClock().now()
    shown = run_on_database(settings, lambda database: database.read(list_providers, [], now))
    known = sorted({*file.providers, *(record["name"] for record in shown)})
    if name not in known:
        raise OperatorError(f"--provider: found {name!r}; {suggest_provider(name, known)}")


def describe_warnings(record: Mapping[str, Any]) -> list[str]:
    """Return one line for each field that drifted and each API that will be retired."""
    return [
        *(
            f"{drift['kind']}: {drift['field']} {drift['problem']} since {drift['since']}"
            for drift in record["drift"]
        ),
        *(
            f"{api['api']}: reaches its end of life on {api['ends_on']}"
            for api in record["retirements"]
        ),
    ]


def _covered_until(record: dict[str, Any]) -> str | None:
    """Return the time up to which every stream of a provider was read."""
    ends = [stream["covered_until"] for stream in record["streams"]]
    return min(filter(None, ends), default=None)


def coverage(
    provider: Annotated[str | None, typer.Option(help="Only intervals from this provider.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="Maximum number of rows.")] = 50,
    as_json: AsJson = False,
    wide: Wide = False,
) -> None:
    """List what was recently read from providers and what failed.

    Shows the newest intervals in the coverage ledger, which records the outcome of each read.
    """
    settings = load_settings()
    if provider is not None:
        require_known(settings, provider)
    records = run_on_database(
        settings, lambda database: database.read(list_coverage, provider, limit)
    )
    print_records(records, _COVERAGE, as_json=as_json, wide=wide)
