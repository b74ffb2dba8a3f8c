"""`tocsin check`: configuration, database and connections."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from zoneinfo import ZoneInfo

import structlog
import typer

from tocsin.accounting import load_rollbacks
from tocsin.cli.database import check_presence, describe_past
from tocsin.cli.drift_checks import find_drift_warnings, list_retirement_warnings
from tocsin.cli.output import print_line, print_text
from tocsin.cli.receiver_checks import check_receivers
from tocsin.clock import SystemClock, isoformat
from tocsin.credentials import IssuerUnavailable, describe_issuer, open_proven_vault
from tocsin.delivery import ChannelFactory, Destination, load_destinations
from tocsin.errors import OperatorError, PluginFailure
from tocsin.hookspecs import Channel, Enricher, Provider
from tocsin.incidents import load_drift
from tocsin.logs import configure_logs
from tocsin.model import Health
from tocsin.observables import Environment
from tocsin.recurrence import Recurrence, ScheduleDefinition
from tocsin.registry import (
    Configuration,
    ManagedBy,
    PluginFactory,
    check_configuration,
    start_plugins,
)
from tocsin.settings import Settings, load_settings
from tocsin.store import (
    CLOCK_TOLERANCE,
    Database,
    HeadFile,
    check_schema,
    describe_offset,
    find_missing_limits,
    identify_location,
    is_sqlite,
    measure_offset,
    open_database,
    parse_url,
    sqlite_file,
)
from tocsin.tracing import describe_endpoint, find_missing

_TIMEOUT_SECONDS = 30
_INVALID_CONFIGURATION = 2
_NETWORKS_MISSING = (
    "environment: internal_networks is not set, so investigations treat only private"
    " addresses as internal; list all your networks, including public ones, in [environment] of"
    " plugins.toml, such as"
    ' internal_networks = ["10.0.0.0/8", "203.0.113.0/24"]'
)


def check() -> None:
    """Check the configuration, the database and all connections.

    Connects to the OpenID Connect issuer and to every provider, enricher and destination. If parts
    of the configuration are invalid, the others are still checked.

    Exit status: 0 if all checks pass, 1 if a check fails, 2 if the configuration is invalid.
    """
    settings = load_settings()
    configure_logs(settings.log_format, settings.log_level)
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
    if status := asyncio.run(_check(settings)):
        raise typer.Exit(status)


async def _check(settings: Settings) -> int:
    """Return the exit status."""
    configuration, problems = await check_configuration(
        settings.plugins_file, templates_dir=settings.templates_dir
    )
    for problem in problems:
        print_text(problem, file=sys.stderr)
    if not problems:
        print_text(f"{settings.plugins_file}: configuration valid")
    # Absent parts of a strict configuration are among the problems
    lenient = replace(configuration, strict=configuration.strict and not problems)
    passed = await _check_parts(settings, lenient)
    return _INVALID_CONFIGURATION if problems else int(not passed)


async def _check_parts(settings: Settings, configuration: Configuration) -> bool:
    """Return whether all checks of the valid parts of the configuration pass."""
    environment = Environment(configuration.environment)
    maker = PluginFactory(SystemClock(), settings.public_url, environment)
    passed = [await _check_database(settings, configuration, maker), await _check_issuer(settings)]
    live = await start_plugins(configuration, maker)
    try:
        passed += [await _check_provider(provider) for provider in live.providers.values()]
        for section, plugins in (
            ("enrichers", live.enrichers),
            ("destinations", live.channels),
        ):
            passed += [await _check_plugin(section, plugin) for plugin in plugins.values()]
    finally:
        await live.close()
    passed += [check_receivers(configuration, settings), _check_tracing(settings)]
    if not environment.names_networks:
        print_text(_NETWORKS_MISSING)
    for name, definition in configuration.schedules.items():
        print_text(f"schedules.{name}: {_next_run(definition)}")
    for absent in live.absent:
        print_line(f"{absent.name}: not loaded: {absent.reason}", file=sys.stderr)
    return all(passed) and not live.absent


def _check_tracing(settings: Settings) -> bool:
    """Return whether what tracing needs is installed, if it is on."""
    remedy = find_missing() if settings.tracing else None
    if remedy is not None:
        print_text(f"tracing: OpenTelemetry is not installed; {remedy}", file=sys.stderr)
    elif settings.tracing:
        print_text(f"tracing: exporting to {describe_endpoint()}; nothing was sent")
    return remedy is None


def _next_run(definition: ScheduleDefinition) -> str:
    """Return the first run of a schedule that is created now."""
    now = SystemClock().now()
    following = Recurrence(definition, "", now).without_jitter().next(now)
    if following is None:
        return "no more runs, because `ends_at` has passed"
    local = following.at.astimezone(ZoneInfo(definition.timezone))
    return f"next run at {isoformat(following.at)} ({local:%H:%M} {definition.timezone})"


async def _check_database(
    settings: Settings, configuration: Configuration, maker: PluginFactory
) -> bool:
    """Return whether the database and the destinations created over the API pass their checks."""
    from tocsin.node import plan_file

    url = parse_url(settings.database)
    file = HeadFile(settings.data_dir, identify_location(url))
    is_missing = is_sqlite(url) and not sqlite_file(url).exists()
    if is_missing and not file.load([]):
        print_text(f"database: {sqlite_file(url)} will be created at first startup")
        return True
    if is_missing:
        print_text(f"database: {describe_past(file)}", file=sys.stderr)
        return False
    database = open_database(url)
    try:
        await database.require_sessions()
        await check_presence(database, file)
        await check_schema(database)
        vault = await open_proven_vault(settings, database)
        print_text("database: schema up to date, encryption key valid")
        missing = await database.read(find_missing_limits)
        if not (is_sqlite(url) or missing):
            print_text("database: session limits in effect")
        problems = [f"session limit not in effect: {limit}" for limit in missing]
        problems += await _find_differences(database, file)
        for problem in problems:
            print_text(f"database: {problem}", file=sys.stderr)
        await _report_drift(database, configuration)
        channels = ChannelFactory(configuration, maker, vault.decrypt, settings.allow_networks)
        known = await database.read(load_destinations)
        await database.read(plan_file, configuration)  # raises if a name is taken
        made = [
            destination
            for destination in known
            if destination.managed_by is ManagedBy.API and destination.is_served
        ]
        passed = [await _check_destination(destination, channels) for destination in made]
        return all(passed) and not problems
    except OperatorError as error:
        print_text(f"database: {error}", file=sys.stderr)
        return False
    finally:
        await database.close()


async def _report_drift(database: Database, configuration: Configuration) -> None:
    """Print the fields that the records of configured providers have lacked for a day."""
    recorded = await database.read(load_drift)
    for item in configuration.providers:
        for drift in recorded.get(item.name, []):
            what = f"{drift['kind']}: {drift['field']} {drift['problem']} since {drift['since']}"
            print_line(f"providers.{item.name}: warning: {what}", file=sys.stderr)


async def _find_differences(database: Database, file: HeadFile) -> list[str]:
    """Return how the database is behind its head, and this machine's clock off the database's."""
    behind = await database.read(load_rollbacks, file)
    offset = await database.read(measure_offset, SystemClock())
    problems = [anomaly["detail"] for anomaly in behind]
    if offset is not None and abs(offset) >= CLOCK_TOLERANCE:
        clock = f"this machine's clock is {describe_offset(offset)} of the database's"
        problems.append(f"{clock}; synchronize the clocks (NTP)")
    return problems


async def _check_issuer(settings: Settings) -> bool:
    """Return whether the OpenID Connect issuer, if there is one, can be used."""
    if not settings.oidc_issuer:
        return True
    try:
        print_line(f"openid connect: {await describe_issuer(settings)}")
    except IssuerUnavailable as error:
        print_line(f"openid connect: {error}", file=sys.stderr)
        return False
    return True


async def _check_destination(destination: Destination, channels: ChannelFactory) -> bool:
    """Return whether a destination that was created over the API passes its check."""
    try:
        live = await channels.make(destination)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a plugin's error must not affect others
        print_line(f"destinations.{destination.name}: not loaded: {error}", file=sys.stderr)
        return False
    try:
        return await _check_plugin("destinations", live.plugin)
    finally:
        await live.close()


async def _check_provider(provider: Provider) -> bool:
    """Return whether a provider passes its check; what it reads is compared with its contract.

    Ends of APIs are shown in any case, since they may be why a check fails.
    """
    passed = await _check_plugin("providers", provider)
    drift = await find_drift_warnings(provider) if passed else []
    for warning in (*list_retirement_warnings(provider), *drift):
        print_line(f"providers.{provider.tools.name}: warning: {warning}", file=sys.stderr)
    return passed


async def _check_plugin(section: str, plugin: Provider | Channel | Enricher) -> bool:
    health = await _load_health(plugin)
    for problem in health.problems:
        print_line(f"{section}.{plugin.tools.name}: {problem}", file=sys.stderr)
    if not health.problems:
        print_line(f"{section}.{plugin.tools.name}: {health.detail}")
    return not health.problems


async def _load_health(plugin: Provider | Channel | Enricher) -> Health:
    try:
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            health = await plugin.check()
    except PluginFailure as error:
        return Health(detail="", problems=(str(error),))
    except TimeoutError:
        return Health(detail="", problems=(f"no response within {_TIMEOUT_SECONDS} seconds",))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a plugin's bug must not affect others
        return Health(detail="", problems=(f"health check failed: {error!r}",))
    if isinstance(health, Health):
        return health
    return Health(detail="", problems=(f"health check returned {health!r} instead of `Health`",))
