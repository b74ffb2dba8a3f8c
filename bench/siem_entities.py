"""Accuracy of the entities that providers find in public sample sets.

    python -m bench.siem_entities PATH...

Each path is a file with a JSON array or one JSON object per line, of Wazuh alerts or findings, or a
folder of such files. For each file, prints the records, the entities found, the false ones and the
missed ones, by the labels in `siem_entities.toml`; `--list` prints each of those.
"""

from __future__ import annotations

import argparse
import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from typing import Any

from tocsin_connectors.siem.wazuh.mapping import find_entities

LABELS = tomllib.loads((Path(__file__).parent / "siem_entities.toml").read_text())
Found = tuple[str, str]
"""Kind and value, in lower case."""
_PLACEHOLDERS = frozenset({"", "-", "none", "null", "unknown", "n/a", "undefined"})
_FORMS = {
    "host": re.compile(r"[\w][\w.-]{0,252}"),
    "domain": re.compile(r"[\w-]+(\.[\w-]+)+\.?"),
    "user": re.compile(r"(?=.*[^\d])[^/:*?\"<>|;,=%]{1,128}"),
    "email": re.compile(r"[^\s@]+@[\w.-]+.*"),
    "mailbox": re.compile(r"[^\s@]+@[\w.-]+"),
    "process": re.compile(r"(?=.*\D)\S.{0,127}"),
    "file": re.compile(r"(?!(?:\[x\d\d\] ?)?HKEY_)\S.*"),
    "file_hash": re.compile(r"(?:\w+=)?(?!0+$)(?:[0-9a-fA-F]{32}|[0-9a-fA-F]{40}|[0-9a-fA-F]{64})"),
    "url": re.compile(r"[a-z]+://\S+", re.IGNORECASE),
    "cve": re.compile(r"CVE-\d{4}-\d{4,}", re.IGNORECASE),
    "cloud_resource": re.compile(r"\S+"),
}


@dataclass
class Tally:
    """Counts over the records of a set."""

    records: int = 0
    entities: int = 0
    false: Counter[Found] = field(default_factory=Counter)
    missed: Counter[Found] = field(default_factory=Counter)

    def add(self, record: dict[str, Any]) -> None:
        """Count the entities of a record."""
        found = {
            (entity.kind.value, _normalize(entity.kind.value, entity.value))
            for entity in find_entities(record)
        }
        required, accepted = (set(_list_labeled(record, name)) for name in ("required", "accepted"))
        self.records += 1
        self.entities += len(found)
        self.false.update(found - required - accepted)
        self.missed.update(required - found)

    def format(self, name: str) -> str:
        """Return the row of the table."""
        false, missed = self.false.total(), self.missed.total()
        share = 100 * false / self.entities if self.entities else 0.0
        return f"{name:44} {self.records:8} {self.entities:9} {false:6} {share:6.2f} % {missed:7}"


def _list_labeled(record: dict[str, Any], group: str) -> Iterator[Found]:
    for path, value in _flatten(record):
        for kind in _list_kinds(path, group):
            if not _is_excluded(record, path) and _has_form(kind, value):
                yield kind, _normalize(kind, value)


@cache
def _list_kinds(path: str, group: str) -> tuple[str, ...]:
    labels: dict[str, list[str]] = LABELS[group]
    return tuple(
        kind
        for kind, patterns in labels.items()
        if any(fnmatchcase(path, pattern) for pattern in patterns)
    )


def _is_excluded(record: dict[str, Any], path: str) -> bool:
    values = dict(_flatten(record))
    return any(
        path in rule["patterns"] and values.get(rule["field"]) in rule["values"]
        for rule in LABELS["never"]
    )


def _flatten(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _flatten(item, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for item in value:
            yield from _flatten(item, path)
    elif isinstance(value, str):
        yield path, value


def _has_form(kind: str, value: str) -> bool:
    if value.strip().lower() in _PLACEHOLDERS:
        return False
    if kind == "ip":
        try:
            ip_address(value)
        except ValueError:
            return False
        return True
    return _FORMS[kind].fullmatch(value.strip()) is not None


def _normalize(kind: str, value: str) -> str:
    value = value.strip().casefold()
    if kind == "ip":
        address = ip_address(value)
        return str((isinstance(address, IPv6Address) and address.ipv4_mapped) or address)
    if kind in {"host", "domain"}:
        return value.rstrip(".")
    if kind == "process":
        return re.split(r"[\\/]", value)[-1]
    if kind == "email":
        return value.split("(")[0]
    return value.rpartition("=")[2] if kind == "file_hash" else value


def read_records(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of a file: a JSON array, or one JSON object per line."""
    text = path.read_text(encoding="utf-8")
    try:
        whole = json.loads(text)
    except ValueError:
        whole = [json.loads(line) for line in text.splitlines() if line.strip()]
    for record in whole if isinstance(whole, list) else [whole]:
        if isinstance(record, dict):
            yield record.get("_source", record)


def main() -> None:
    """Print the table for the paths on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--list", action="store_true", help="print false and missed entities")
    options = parser.parse_args()
    print(f"{'set':44} {'records':>8} {'entities':>9} {'false':>6} {'share':>8} {'missed':>7}")
    files = [file for path in options.paths for file in _list_files(path)]
    every = Tally()
    for file in files:
        tally = Tally()
        for record in read_records(file):
            tally.add(record)
            every.add(record)
        print(tally.format("/".join(file.parts[-2:])))
    print(every.format("all"))
    if options.list:
        for name, counter in (("false", every.false), ("missed", every.missed)):
            for (kind, value), count in counter.most_common():
                print(f"{name:7} {count:6} {kind:15} {value:.120}")


def _list_files(path: Path) -> list[Path]:
    found = path.rglob("*") if path.is_dir() else [path]
    return sorted(file for file in found if file.suffix in {".json", ".jsonl", ".ndjson"})


if __name__ == "__main__":
    main()
