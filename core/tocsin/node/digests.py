"""Digests of what plugins and destinations depend on, to restart only those that changed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from tocsin.delivery import ChannelFactory, Destination
from tocsin.fields import CERTIFICATE_FILES
from tocsin.registry import Configuration, ConfiguredPlugin, table_path


def list_plugins(configuration: Configuration) -> Iterator[tuple[str, ConfiguredPlugin[Any]]]:
    """Yield the tables that run on this node alone, each with its section."""
    yield from (("providers", item) for item in configuration.providers)
    yield from (("enrichers", item) for item in configuration.enrichers)
    if configuration.investigator is not None:
        yield "investigator", configuration.investigator


def digest_plugins(configuration: Configuration) -> dict[str, object]:
    """Return digests of what each table's plugin depends on, by the path of the table."""
    folder = configuration.path.parent
    return {
        table_path(section, item.name): (
            _digest(item.kind, item.settings, item.table, folder),
            # enrichers and the investigator read it when they start
            None if section == "providers" else configuration.environment,
        )
        for section, item in list_plugins(configuration)
    }


def find_certificates(configuration: Configuration) -> Iterator[Path]:
    """Yield the paths of the certificate files that all tables name."""
    sections = (configuration.providers, configuration.enrichers, configuration.destinations)
    for section in sections:
        for item in section:
            named = (getattr(item.settings, each, None) for each in CERTIFICATE_FILES[:2])
            yield from (Path(path) for path in named if path)


def digest_destinations(
    destinations: Iterable[Destination], channels: ChannelFactory, folder: Path
) -> dict[str, object]:
    """Return a digest of what each destination depends on, by destination name."""
    kinds = channels.kinds
    return {
        each.name: _digest(kinds[each.plugin], kinds[each.plugin].Settings, each.settings, folder)
        for each in destinations
        if each.plugin in kinds
    }


def list_secret_files(
    destinations: Iterable[Destination], channels: ChannelFactory, folder: Path
) -> list[Path]:
    """Return the files that the settings of destinations refer to."""
    kinds = channels.kinds
    return [
        path
        for each in destinations
        if each.plugin in kinds
        for path in kinds[each.plugin].Settings.find_start_files(each.settings, folder)
    ]


def _digest(kind: object, settings: Any, table: Mapping[str, Any], folder: Path) -> object:
    """Return a value that changes with a table, and with the files that it refers to."""
    files = tuple(map(_digest_file, settings.find_start_files(table, folder)))
    return kind, dict(table), files


def digest_templates(configuration: Configuration) -> object:
    """Return a value that changes with the operator's templates, and with the plugins'."""
    folder = configuration.templates_dir
    paths = sorted(folder.rglob("*")) if folder is not None else []
    digests = {path: _digest_file(path) for path in paths if path.is_file()}
    return tuple(configuration.template_paths), folder, digests


def _digest_file(path: Path) -> bytes | None:
    with suppress(OSError):
        return hashlib.sha256(path.read_bytes()).digest()
    return None
