"""Known vulnerabilities of pinned packages, from a copy of advisories on this machine.

For machines that do not reach an advisory service. The copy is a folder of OSV records in JSON or
YAML, such as a clone of https://github.com/pypa/advisory-database.

Usage: advisories.py FOLDER REQUIREMENTS. Exit status: 0 without findings, 1 with findings, 2 if the
folder holds no advisories.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

_PIN = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==([^ ;\\]+)", re.MULTILINE)
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_pins(text: str) -> dict[str, Version]:
    """Return the version of each pinned package by its canonical name."""
    return {canonicalize_name(name): Version(version) for name, version in _PIN.findall(text)}


def read_advisories(folder: Path) -> Iterator[Mapping[str, Any]]:
    """Yield the OSV records below a folder that were not withdrawn."""
    for path in sorted(folder.rglob("*")):
        if path.suffix not in {".json", ".yaml", ".yml"}:
            continue
        text = path.read_text(encoding="utf-8")
        record = json.loads(text) if path.suffix == ".json" else yaml.load(text, _LOADER)
        if isinstance(record, dict) and "affected" in record and "withdrawn" not in record:
            yield record


def is_affected(affected: Mapping[str, Any], version: Version) -> bool:
    """Return whether a version is among those that an entry of a record names (OSV schema 1.6)."""
    if any(_parse(listed) == version for listed in affected.get("versions", ())):
        return True
    ranges = (one for one in affected.get("ranges", ()) if one.get("type") == "ECOSYSTEM")
    return any(_is_within(one["events"], version) for one in ranges)


def _is_within(events: list[Mapping[str, str]], version: Version) -> bool:
    is_inside = False
    for event in events:  # in ascending order, as the schema asks for
        [(kind, text)] = event.items()
        at = Version("0.dev0") if text == "0" else _parse(text)
        if at is None:
            continue
        if kind == "introduced" and version >= at:
            is_inside = True
        if (kind == "fixed" and version >= at) or (kind == "last_affected" and version > at):
            is_inside = False
    return is_inside


def _parse(text: str) -> Version | None:
    try:
        return Version(str(text))
    except InvalidVersion:
        return None


def find_vulnerabilities(folder: Path, pins: Mapping[str, Version]) -> tuple[int, list[str]]:
    """Return the number of advisories, and a line for each that a pin is affected by."""
    count, found = 0, []
    for record in read_advisories(folder):
        count += 1
        for affected in record["affected"]:
            package = affected.get("package", {})
            name = canonicalize_name(str(package.get("name", "")))
            if package.get("ecosystem") != "PyPI" or name not in pins:
                continue
            if is_affected(affected, pins[name]):
                aliases = ", ".join(record.get("aliases", ()))
                found.append(f"{name} {pins[name]}: {record['id']} ({aliases})")
    return count, sorted(set(found))


def main() -> int:
    """Print what was found, and return the exit status."""
    folder, requirements = map(Path, sys.argv[1:3])
    pins = read_pins(requirements.read_text(encoding="utf-8"))
    count, found = find_vulnerabilities(folder, pins)
    if not count:
        sys.stderr.write(f"{folder}: no advisories; use a folder of OSV records\n")
        return 2
    sys.stdout.write("".join(f"{line}\n" for line in found))
    sys.stdout.write(f"{len(pins)} packages, {count} advisories, {len(found)} vulnerabilities\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
