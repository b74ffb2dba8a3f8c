"""`tocsin check`: configuration, database and connections."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from zoneinfo import ZoneInfo

import structlog
import typer

from tocsin.accounting import load_rollbacks
from tocsin.cli.check_report import CheckReport
from tocsin.cli.database import check_presence, describe_past
from tocsin.cli.doctor.network import find_unresolved_names
from tocsin.cli.drift_checks import find_drift_warnings, list_retirement_warnings
from tocsin.cli.output import AsJson
from tocsin.cli.plugin_health import load_health
from tocsin.cli.receiver_checks import check_receivers
from tocsin.cli.replica import examine_replica
from tocsin.clock import SystemClock, isoformat
from tocsin.credentials import (
    IssuerUnavailable,
    describe_issuer,
    find_passkey_fault,
    has_people,
    open_proven_vault,
)
from tocsin.delivery import ChannelFactory, Destination, load_destinations
from tocsin.errors import ConfigurationError, OperatorError
from tocsin.hookspecs import Channel, Enricher, Intake, NoIntake, Provider
from tocsin.incidents import load_drift
from tocsin.logs import configure_logs
from tocsin.observables import Environment
from tocsin.recurrence import Recurrence, ScheduleDefinition
from tocsin.registry import (
    Configuration,
    ManagedBy,
    PluginFactory,
    check_configuration,
    start_plugins,
    table_path,
)
from tocsin.retention import find_partition_problems
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
    parse_urls,
    require_fault,
    require_writable,
    sqlite_file,
)
from tocsin.tracing import describe_endpoint, find_missing

_INVALID_CONFIGURATION = 2
_NETWORKS_MISSING = (
    "internal_networks is not set, so investigations treat only private"
    " addresses as internal; list all your networks, including public ones, in [environment] of"
    " plugins.toml, such as"
    ' internal_networks = ["10.0.0.0/8", "203.0.113.0/24"]'
)


def check(as_json: AsJson = False) -> None:
    """Check the configuration, the database and all connections.

    Connects to the database, the OpenID Connect issuer, the intake, all providers and enrichers,
    and all destinations that it can test without delivering an event. Checks the valid parts
    even if other parts of the configuration are invalid.

    Exit status: 0 if all checks pass, 1 if a check fails, 2 if the configuration is invalid.
    """
    settings = load_settings()
    configure_logs(settings.log_format, settings.log_level)
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
    report = CheckReport(settings.plugins_file, as_json=as_json)
    status = asyncio.run(_check(settings, report))
    report.finish()
    if status:
        raise typer.Exit(status)


async def _check(settings: Settings, report: CheckReport) -> int:
    """Return the exit status."""
    try:
        configuration, problems = await check_configuration(
            settings.plugins_file, templates_dir=settings.templates_dir, correct_names=True
        )
    except ConfigurationError as error:
        for problem in error.problems:
            report.add_problem(problem)
        return _INVALID_CONFIGURATION
    for problem in problems:
        report.add_problem(problem)
    if not problems:
        report.note(str(settings.plugins_file), "configuration valid")
    # Absent parts of a strict configuration are among the problems
    lenient = replace(configuration, strict=configuration.strict and not problems)
    await _check_parts(settings, lenient, report)
    return _INVALID_CONFIGURATION if problems else int(not report.passed)


async def _check_parts(
    settings: Settings, configuration: Configuration, report: CheckReport
) -> None:
    """Check the valid parts of the configuration."""
    environment = Environment(configuration.environment)
    maker = PluginFactory(SystemClock(), settings.public_url, environment)
    await _check_database(settings, configuration, maker, report)
    await _check_issuer(settings, report)
    live = await start_plugins(configuration, maker)
    try:
        for provider in live.providers.values():
            await _check_provider(provider, report)
        if not isinstance(live.intake, NoIntake):
            await _check_plugin("intake", live.intake, report)
        for enricher in live.enrichers.values():
            await _check_plugin("enrichers", enricher, report)
        for channel in live.channels.values():
            await _check_channel(channel, report)
    finally:
        await live.close()
    check_receivers(configuration, settings, report)
    _check_tracing(settings, report)
    if not environment.names_networks:
        report.hint("environment", _NETWORKS_MISSING)
    for name, definition in configuration.schedules.items():
        report.note(f"schedules.{name}", _next_run(definition))
    for absent in live.absent:
        report.fail(absent.name, f"not loaded: {absent.reason}")


def _check_tracing(settings: Settings, report: CheckReport) -> None:
    """Check that OpenTelemetry is installed if tracing is on."""
    if not settings.tracing:
        return
    if remedy := find_missing():
        report.fail("tracing", f"OpenTelemetry is not installed; {remedy}")
    else:
        report.note(
            "tracing",
            f"configured to export to {describe_endpoint()}; the connection was not tested",
        )


def _next_run(definition: ScheduleDefinition) -> str:
    """Describe the first run of a schedule that is created now."""
    now = SystemClock().now()
    following = Recurrence(definition, "", now).without_jitter().next(now)
    if following is None:
        return "no run is due before `ends_at`"
    local = following.at.astimezone(ZoneInfo(definition.timezone))
    return f"next run at {isoformat(following.at)} ({local:%H:%M} {definition.timezone})"


async def _check_database(
    settings: Settings, configuration: Configuration, maker: PluginFactory, report: CheckReport
) -> None:
    """Check the database, and the destinations created over the API."""
    from tocsin.node import plan_file

    urls = parse_urls(settings)
    url = urls.main
    file = HeadFile(settings.data_dir, identify_location(url))
    is_missing = is_sqlite(url) and not sqlite_file(url).exists()
    if is_missing and not file.load([]):
        report.note("database", f"{sqlite_file(url)} does not exist; `tocsin serve` creates it")
        return
    if is_missing:
        report.fail("database", describe_past(file) or "missing")
        return
    database = open_database(url, urls.sessions)
    try:
        await database.require_sessions()
        await check_presence(database, file)
        await check_schema(database)
        vault = await open_proven_vault(settings, database)
        report.note("database", "the schema is up to date, and the encryption key is valid")
        await _report_writability(database, report)
        missing = await database.read(find_missing_limits)
        if not (is_sqlite(url) or missing):
            report.note("database", "all session limits are in effect")
        problems = [f"this session limit is not in effect: {limit}" for limit in missing]
        problems += await _find_differences(database, file)
        for problem in problems:
            report.fail("database", problem)
        if (replica := await examine_replica(settings, database)) is not None:
            if replica.remedy is None:
                report.note("database", replica.found)
            else:
                report.fail("database", f"{replica.found}; {replica.remedy}")
        await _report_partitions(database, report)
        await _report_drift(database, configuration, report)
        await _check_passkeys(settings, database, report)
        channels = ChannelFactory(configuration, maker, vault.decrypt, settings.allow_networks)
        known = await database.read(load_destinations)
        await database.read(plan_file, configuration)  # raises if a name is taken
        for destination in known:
            if destination.managed_by is ManagedBy.API and destination.is_served:
                await _check_destination(destination, channels, report)
    except OperatorError as error:
        report.fail("database", str(error))
    finally:
        await database.close()


async def _report_writability(database: Database, report: CheckReport) -> None:
    """Report a fault that keeps the database from accepting writes."""
    try:
        await require_writable(database)
    except Exception as error:  # noqa: BLE001 - raised again if it is no fault
        report.fail("database", str(require_fault(error)))


async def _report_partitions(database: Database, report: CheckReport) -> None:
    """Report problems with the partitions of a PostgreSQL database."""
    for found, remedy in await database.read(find_partition_problems, SystemClock().now()):
        report.warn("database", f"{found}; {remedy}")


async def _report_drift(
    database: Database, configuration: Configuration, report: CheckReport
) -> None:
    """Report the fields that the records of configured providers have lacked for a day."""
    recorded = await database.read(load_drift)
    for item in configuration.providers:
        for drift in recorded.get(item.name, []):
            what = f"{drift['kind']}: {drift['field']} {drift['problem']} since {drift['since']}"
            report.warn(f"providers.{item.name}", what)


async def _check_passkeys(settings: Settings, database: Database, report: CheckReport) -> None:
    """Warn if passkeys do not work at the base URL and people need them to sign in."""
    fault = find_passkey_fault(settings.public_url, settings.port)
    if fault is not None and await database.read(has_people):
        report.warn("TOCSIN_BASE_URL", f"{fault} Until then, people cannot sign in with passkeys.")


async def _find_differences(database: Database, file: HeadFile) -> list[str]:
    """Return rollbacks of the database, and the offset of this machine's clock from its clock."""
    behind = await database.read(load_rollbacks, file)
    offset = await database.read(measure_offset, SystemClock())
    problems = [anomaly["detail"] for anomaly in behind]
    if offset is not None and abs(offset) >= CLOCK_TOLERANCE:
        difference = describe_offset(offset)
        clock = f"compared with the database's clock, this machine's clock is {difference}"
        problems.append(f"{clock}; synchronize the clocks with NTP")
    return problems


async def _check_issuer(settings: Settings, report: CheckReport) -> None:
    """Check the OpenID Connect issuer if one is configured."""
    if not settings.oidc_issuer:
        return
    try:
        report.note("openid connect", await describe_issuer(settings))
    except IssuerUnavailable as error:
        report.fail("openid connect", str(error))


async def _check_destination(
    destination: Destination, channels: ChannelFactory, report: CheckReport
) -> None:
    """Check a destination that was created over the API."""
    try:
        live = await channels.make(destination)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a plugin's error must not affect others
        report.fail(f"destinations.{destination.name}", f"not loaded: {error}")
        return
    try:
        await _check_channel(live.plugin, report)
    finally:
        await live.close()


async def _check_provider(provider: Provider, report: CheckReport) -> None:
    """Check a provider, and compare what it reads with its contract.

    Shows API retirements even if the check fails, because a retirement can be the cause.
    """
    passed = await _check_plugin("providers", provider, report)
    drift = await find_drift_warnings(provider) if passed else []
    for warning in (*list_retirement_warnings(provider), *drift):
        report.warn(f"providers.{provider.tools.name}", warning)


async def _check_channel(channel: Channel, report: CheckReport) -> None:
    """Check a channel, and resolve the host names of its servers."""
    subject = f"destinations.{channel.tools.name}"
    if await _check_plugin("destinations", channel, report):
        for name, error in await find_unresolved_names([(subject, channel.settings)]):
            report.fail(
                subject, f"{name} cannot be resolved: {error}; correct the name, or fix DNS"
            )


async def _check_plugin(
    section: str, plugin: Provider | Channel | Enricher | Intake, report: CheckReport
) -> bool:
    """Return whether a plugin reports no problem."""
    subject, health = table_path(section, plugin.tools.name), await load_health(plugin)
    for problem in health.problems:
        report.fail(subject, problem)
    if not health.problems:
        report.note(subject, health.detail)
    return not health.problems
