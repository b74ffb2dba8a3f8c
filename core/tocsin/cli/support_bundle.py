"""`tocsin support-bundle`: diagnostics for a support case, without secrets."""

from __future__ import annotations

import asyncio
import io
import os
import platform
import sys
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from datetime import datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import orjson
import structlog
import typer
from pydantic import SecretStr
from sqlalchemy import Connection, func, select, text

from tocsin import accounting
from tocsin.cli.doctor import examine
from tocsin.cli.output import AsJson, print_json, print_text
from tocsin.clock import SystemClock
from tocsin.credentials import open_proven_vault
from tocsin.delivery import ChannelFactory, load_destinations, read_backlogs
from tocsin.errors import OperatorError
from tocsin.fields import is_secret_name
from tocsin.incidents import describe_providers, list_providers
from tocsin.redaction import HIDDEN, Redactor, list_secret_values
from tocsin.registry import Configuration, PluginFactory, check_configuration, installed_plugins
from tocsin.settings import Settings, load_settings
from tocsin.store import Database, is_sqlite, open_session_database, parse_url, sqlite_file
from tocsin.store.tables import metadata

PERIOD = timedelta(days=7)
"""The period of the account."""
MAX_LOG_BYTES = 5 * 2**20
_REFUSED = "nothing was written"


def support_bundle(
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Archive to write (.tar.gz). Default: tocsin-support-<time>.tar.gz in the current "
            "directory.",
        ),
    ] = None,
    log: Annotated[
        Path | None,
        typer.Option(
            "--log",
            help="Log file of the service. The last 5 MiB of this file are added to the archive.",
        ),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Write the archive without confirmation.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Collect diagnostics for a support case, without secrets.

    Lists the contents of the archive and asks for confirmation before writing it. The
    archive does not contain incidents, events, reports or the secrets that you configured in the
    settings, in plugins.toml and in destinations. However, it contains the names of hosts,
    providers and destinations.
    """
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
    now = SystemClock().now()
    path = output or Path(f"tocsin-support-{now:%Y%m%d-%H%M%S}.tar.gz")
    if path.exists():
        raise OperatorError(f"{path} already exists; choose another name with --output")
    files = asyncio.run(collect(load_settings(), now, log))
    if as_json and not yes:
        raise OperatorError(f"{_REFUSED}; with --json, also use --yes")
    if as_json:
        _write(path, files, now)
        sizes = {name: len(content) for name, content in files.items()}
        print_json({"path": str(path), "files": sizes})
        return
    print_text(f"{path} will contain:")
    for name, content in files.items():
        print_text(f"  {name:20}{len(content):>10,} bytes")
    if not yes and not (sys.stdin.isatty() and typer.confirm("Write the archive?")):
        raise OperatorError(f"{_REFUSED}; confirm the prompt, or use --yes")
    _write(path, files, now)
    print_text(f"wrote {path}; review the archive before you share it")


def _write(path: Path, files: Mapping[str, bytes], now: datetime) -> None:
    """Write the archive, which only this user can read."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file, tarfile.open(fileobj=file, mode="w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(f"tocsin-support/{name}")
            member.size, member.mtime, member.mode = len(content), int(now.timestamp()), 0o600
            archive.addfile(member, io.BytesIO(content))


async def collect(settings: Settings, now: datetime, log: Path | None = None) -> dict[str, bytes]:
    """Return the files of the bundle by name, without secrets."""
    configuration, problems = await check_configuration(
        settings.plugins_file, templates_dir=settings.templates_dir
    )
    parts: dict[str, Any] = {
        "versions.json": _describe_versions(),
        "settings.json": _describe_settings(settings),
        "plugins.json": {
            "file": configuration.file.model_dump(mode="json"),
            "problems": [str(problem) for problem in problems],
            "absent": [asdict(absent) for absent in configuration.absent],
        },
        "doctor.json": [asdict(finding) for finding in await examine()],
    }
    secrets = set(_list_secrets(settings, configuration))
    parts |= await _describe_database(settings, configuration, now, secrets)
    redactor = Redactor(secrets)
    options = orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS
    files = {
        name: redactor.clean_bytes(orjson.dumps(part, option=options, default=str))
        for name, part in parts.items()
    }
    if log is not None:
        files["service.log"] = redactor.clean_bytes(_read_end(log))
    return files


def _list_secrets(settings: Settings, configuration: Configuration) -> Iterator[str]:
    """Yield the secrets of the settings, of the environment and of all tables."""
    yield from list_secret_values(settings)
    for url in (settings.database, settings.session_database):
        if password := parse_url(url).password:
            yield str(password)
    for name, value in os.environ.items():
        if is_secret_name(name) and not name.endswith("_FILE"):
            yield value
    sections = (configuration.providers, configuration.enrichers, configuration.destinations)
    for section in sections:
        for item in section:
            yield from list_secret_values(item.settings)


def _describe_versions() -> dict[str, Any]:
    return {
        "tocsin": version("tocsin"),
        "python": sys.version,
        "platform": platform.platform(),
        "plugins": [f"{each.name} {each.version}" for each in installed_plugins()],
    }


def _describe_settings(settings: Settings) -> dict[str, Any]:
    """Return the settings that differ from their defaults."""
    shown: dict[str, Any] = {}
    for name in sorted(settings.model_fields_set):
        value = getattr(settings, name)
        shown[name] = HIDDEN if isinstance(value, SecretStr) else str(value)
    url = parse_url(settings.database)
    return {
        "settings": shown,
        "secret_files": {name: str(path) for name, path in settings.secret_files.items()},
        "database": url.render_as_string(hide_password=True),
    }


async def _describe_database(
    settings: Settings, configuration: Configuration, now: datetime, secrets: set[str]
) -> dict[str, Any]:
    """Return the files on the database; add the secrets of its destinations."""
    url = parse_url(settings.database)
    if is_sqlite(url) and not sqlite_file(url).exists():
        return {}
    database = open_session_database(settings)
    try:
        secrets.update(await _list_stored_secrets(settings, configuration, database))
        return await database.read(_read_database, configuration, now)
    except OperatorError as error:
        return {"database.json": {"error": str(error)}}
    finally:
        await database.close()


async def _list_stored_secrets(
    settings: Settings, configuration: Configuration, database: Database
) -> list[str]:
    vault = await open_proven_vault(settings, database)
    factory = PluginFactory(SystemClock())
    channels = ChannelFactory(configuration, factory, vault.decrypt, settings.allow_networks)
    return [
        str(secret)
        for destination in await database.read(load_destinations)
        for secret in channels.secrets(destination).values()
    ]


def _read_database(
    connection: Connection, configuration: Configuration, now: datetime
) -> dict[str, Any]:
    is_postgresql = connection.dialect.name == "postgresql"
    server = "SELECT version()" if is_postgresql else "SELECT sqlite_version()"
    backlogs, unrouted = read_backlogs(connection, now)
    facts = describe_providers(configuration, configuration.absent)
    period = accounting.Period(now - PERIOD, now)
    return {
        "database.json": {
            "version": connection.scalar(text(server)),
            "rows": {
                name: connection.scalar(select(func.count()).select_from(table))
                for name, table in sorted(metadata.tables.items())
            },
        },
        "deliveries.json": {
            "unrouted_events": unrouted,
            "destinations": [asdict(backlog) for backlog in backlogs],
        },
        "providers.json": list_providers(connection, facts, now),
        "account.json": accounting.report_period(connection, period, now),
    }


def _read_end(path: Path) -> bytes:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - MAX_LOG_BYTES))
        return file.read()
