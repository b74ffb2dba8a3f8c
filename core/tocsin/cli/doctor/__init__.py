"""`tocsin doctor`: examination of an installation, with a remedy for each finding."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import structlog
import typer

from tocsin.cli.doctor.database import add_fault, examine_database, examine_database_clock
from tocsin.cli.doctor.findings import Area, Finding, Severity
from tocsin.cli.doctor.intake import examine_intake
from tocsin.cli.doctor.machine import examine_clock, examine_disks, examine_files
from tocsin.cli.doctor.network import (
    examine_certificates,
    examine_names,
    examine_proxies,
    list_servers,
)
from tocsin.cli.doctor.work import (
    examine_destinations,
    examine_retention,
    examine_roles,
    examine_work,
)
from tocsin.cli.output import AsJson, print_json, print_text
from tocsin.cli.replica import examine_replica
from tocsin.clock import SystemClock
from tocsin.credentials import open_proven_vault
from tocsin.delivery import ChannelFactory
from tocsin.errors import ConfigurationError, ConfigurationProblem, OperatorError
from tocsin.fields import PluginSettings
from tocsin.logs import configure_logs
from tocsin.registry import Configuration, PluginFactory, check_configuration
from tocsin.settings import Settings, load_settings
from tocsin.store import Database, is_sqlite, open_database, parse_urls, sqlite_file
from tocsin.tracing import find_missing

Tables = Sequence[tuple[str, PluginSettings]]


def doctor(as_json: AsJson = False) -> None:
    """Diagnose problems with the machine, database and configuration.

    Examines the clock, disks, file permissions, the database, the read replica, the intake, DNS
    names, proxies, certificates, node roles, delays, retention and destinations. Suggests a remedy
    for each problem and warning. Does not change anything, except that it creates the intake's
    stream if the stream does not exist. To also test the credentials for other systems, run `tocsin
    check`.

    Exit status: 0 if there are no problems, 1 if there are problems. Warnings do not affect the
    exit status.
    """
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
    findings = asyncio.run(examine())
    if as_json:
        print_json([asdict(finding) for finding in findings])
    else:
        _print(findings)
    if any(finding.severity is Severity.PROBLEM for finding in findings):
        raise typer.Exit(1)


def _print(findings: Sequence[Finding]) -> None:
    for finding in findings:
        print_text(f"{finding.severity:8}{finding.area}: {finding.found}")
        if finding.remedy is not None:
            print_text(f"{'':8}→ {finding.remedy}")
    counts = Counter(finding.severity for finding in findings)
    print_text(
        f"problems: {counts[Severity.PROBLEM]}, warnings: {counts[Severity.WARNING]}",
        file=sys.stderr,
    )


async def examine() -> list[Finding]:
    """Return all findings, by area."""
    areas: list[Area] = []

    def begin(name: str) -> Area:
        areas.append(Area(name))
        return areas[-1]

    area = begin("configuration")
    try:
        settings = load_settings()
        configure_logs(settings.log_format, settings.log_level)
        structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
        configuration, problems = await check_configuration(
            settings.plugins_file, templates_dir=settings.templates_dir
        )
    except ConfigurationError as error:
        _add_problems(area, error.problems)
        return list(area)
    _add_problems(area, problems)
    for absent in configuration.absent:
        area.warn(f"{absent.name}: {absent.reason}", "repair or install the plugin")
    if settings.tracing and (remedy := find_missing()) is not None:
        area.fail("TOCSIN_TRACING is on, but OpenTelemetry is not installed", remedy)
    if not list(area):
        area.note(f"{settings.plugins_file} is valid")
    clock = begin("clock")
    examine_clock(clock)
    examine_disks(begin("disk"), settings, configuration.retention)
    tables = [*_list_tables(configuration)]
    examine_files(begin("files"), settings, _list_secret_files(configuration))
    tables += await _examine_database(settings, configuration, begin, clock)
    maker = PluginFactory(SystemClock(), settings.public_url)
    await examine_intake(begin("intake"), configuration, maker)
    servers = list_servers(tables)
    await examine_names(begin("names"), servers)
    await examine_proxies(begin("proxies"), settings, tables)
    await examine_certificates(begin("certificates"), settings, tables, servers)
    return [finding for each in areas for finding in each]


def _add_problems(area: Area, problems: Sequence[ConfigurationProblem]) -> None:
    for problem in problems:
        place = f"{problem.file}: {problem.key}" if problem.key else problem.file
        area.fail(f"{place}: {problem.found}", problem.expected)


def _list_tables(configuration: Configuration) -> Iterator[tuple[str, PluginSettings]]:
    """Yield the tables of this node, except destinations, which are read from the database."""
    yield from ((f"providers.{each.name}", each.settings) for each in configuration.providers)
    yield from ((f"enrichers.{each.name}", each.settings) for each in configuration.enrichers)
    if configuration.intake is not None:
        yield "intake", configuration.intake.settings


def _list_secret_files(configuration: Configuration) -> list[Path]:
    folder = configuration.path.parent
    several = (configuration.providers, configuration.enrichers, configuration.destinations)
    return [
        path
        for section in several
        for item in section
        for path in item.settings.find_secret_files(item.table, folder)
    ]


async def _examine_database(
    settings: Settings, configuration: Configuration, begin: Callable[[str], Area], clock: Area
) -> Tables:
    """Examine the database and its queues; return the tables of its destinations."""
    area, urls = begin("database"), parse_urls(settings)
    url = urls.main
    if is_sqlite(url) and not sqlite_file(url).exists():
        area.warn(f"no database at {sqlite_file(url)}", "start `tocsin serve` to create it")
        return [(f"destinations.{each.name}", each.settings) for each in configuration.destinations]
    database = open_database(url, urls.sessions)
    try:
        if not await examine_database(area, settings, database):
            return []
        if (replica := await examine_replica(settings, database)) is not None:
            if replica.remedy is None:
                area.note(replica.found)
            else:
                area.fail(replica.found, replica.remedy)
        await examine_database_clock(clock, database)
        now = SystemClock().now()
        await database.read(examine_roles, begin("roles"), now)
        await database.read(examine_work, begin("work"), configuration, now)
        kept = configuration.retention.with_defaults(settings.retention_days, settings.archive_dir)
        await database.read(examine_retention, begin("retention"), kept, now)
        return await _examine_destinations(settings, configuration, database, begin("destinations"))
    except OperatorError as error:
        area.fail(str(error), "see /readyz and the service log for the cause")
        return []
    except Exception as error:  # noqa: BLE001 - raised again if it is no fault
        add_fault(area, error)
        return []
    finally:
        await database.close()


async def _examine_destinations(
    settings: Settings, configuration: Configuration, database: Database, area: Area
) -> Tables:
    vault = await open_proven_vault(settings, database)
    factory = PluginFactory(SystemClock(), settings.public_url)
    channels = ChannelFactory(configuration, factory, vault.decrypt, settings.allow_networks)
    return await database.read(examine_destinations, area, channels, SystemClock().now())
