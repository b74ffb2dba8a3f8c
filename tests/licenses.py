"""Licenses of the pinned runtime; `python -m tests.licenses` writes the page in the repository."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/reference/licenses.md"
_PINNED = re.compile(r"^([a-z0-9][a-z0-9._-]*)==([^ ]+)( ;)?", re.MULTILINE)
_LONGEST = 60  # a license text instead of its name is longer
_HEAD = """\
# Licenses of dependencies

Tocsin is licensed under the [Apache License 2.0](../../LICENSE). The following table lists the
packages in `requirements/runtime.txt` for Linux, with the licenses that their metadata states. The
bill of materials of a [release](../operators/install.md#release-files) also lists these packages.

| Package | Version | License |
|---|---|---|
"""
_SCRIPTS = """\

The console's graph page contains [d3-force](https://d3js.org/d3-force) 3.0.1 with d3-dispatch,
d3-quadtree and d3-timer (ISC license), in `core/tocsin/web/console/assets/d3-force.js`.
"""


def page() -> str:
    """Return the page."""
    pinned = _PINNED.findall((ROOT / "requirements/runtime.txt").read_text(encoding="utf-8"))
    rows = [
        f"| `{name}` | {version} | {found} |\n"
        for name, version, marker in pinned
        if (found := _find_license(name, required=not marker))
    ]
    return _HEAD + "".join(rows) + _SCRIPTS


def _find_license(name: str, *, required: bool) -> str:
    """Return the license of an installed package, empty for one of another platform."""
    try:
        metadata = distribution(name).metadata
    except PackageNotFoundError:
        if required:
            raise
        return ""
    expression, text = metadata.get("License-Expression"), metadata.get("License") or ""
    classifiers = [
        line.rpartition(" :: ")[2]
        for line in metadata.get_all("Classifier") or ()
        if line.startswith("License ::")
    ]
    if expression:
        return str(expression)
    if text and len(text) <= _LONGEST:
        return text
    return ", ".join(classifiers) or "not stated"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
