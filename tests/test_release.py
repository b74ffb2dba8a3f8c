"""Release machinery: notes, checksums, licenses, and a whole release."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

import licenses

ROOT = Path(__file__).parents[1]
_spec = importlib.util.spec_from_file_location("dist", ROOT / "deploy/dist.py")
dist = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(dist)

CHANGELOG = """\
# Changelog

## Unreleased

- New.

## 0.2.0 - 2027-01-01

### Fixed

- Repaired.

## 0.1.0

- First.
"""


@pytest.mark.parametrize(
    ("version", "notes"),
    [
        ("0.2.0", "# Tocsin 0.2.0\n\n### Fixed\n\n- Repaired.\n"),
        ("0.1.0", "# Tocsin 0.1.0\n\n- First.\n"),
        ("0.3.0", "# Tocsin 0.3.0 (not released)\n\n- New.\n"),
    ],
)
def test_release_notes_are_the_section_of_the_version(version, notes):
    assert dist.cut_release_notes(CHANGELOG, version) == notes


def test_the_changelog_has_notes_of_this_version():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert len(dist.cut_release_notes(changelog, dist.read_version())) > 1_000


def test_the_page_of_licenses_is_current_and_complete():
    page = licenses.page()
    assert page == licenses.PAGE.read_text(encoding="utf-8"), "run `python -m tests.licenses`"
    assert page.count("\n| `") > 40
    assert "not stated" not in page
    # licenses that would bind Tocsin itself are a decision, not an update
    assert "GPL" not in page


@pytest.mark.full
@pytest.mark.timeout(900)
def test_a_release_is_complete_and_installs_without_an_index(tmp_path):
    output, version = tmp_path / "dist", dist.read_version()
    subprocess.run(
        [sys.executable, ROOT / "deploy/dist.py", "--no-image", "--output", output], check=True
    )
    names = {path.name for path in output.iterdir()}
    [bundle] = output.glob("*-offline-*.tar.gz")
    assert names - {bundle.name} == {
        f"tocsin-{version}-py3-none-any.whl",
        f"tocsin-{version}.tar.gz",
        f"tocsin-{version}.cdx.json",
        f"tocsin-{version}-chart.tgz",
        f"tocsin-{version}-release-notes.md",
        "SHA256SUMS",
    }
    subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=output, check=True)
    materials = json.loads((output / f"tocsin-{version}.cdx.json").read_text())
    assert materials["specVersion"] == "1.6"
    assert {"aiohttp", "asyncpg"} <= {component["name"] for component in materials["components"]}
    with tarfile.open(output / f"tocsin-{version}-chart.tgz") as chart:
        rules = chart.extractfile("tocsin/files/tocsin.rules.yml").read()
    assert rules == (ROOT / "deploy/prometheus/tocsin.rules.yml").read_bytes()

    with tarfile.open(bundle) as archive:
        archive.extractall(tmp_path, filter="data")
    folder = tmp_path / bundle.name.removesuffix(".tar.gz")
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    options = ("--no-index", "--find-links", "wheels", "--require-hashes")
    subprocess.run(
        [tmp_path / "venv/bin/pip", "install", "--quiet", *options, "-r", "requirements.txt"],
        cwd=folder,
        env={**os.environ, "PIP_CONFIG_FILE": os.devnull},
        check=True,
    )
    here = tmp_path / "here"
    here.mkdir()
    tocsin = tmp_path / "venv/bin/tocsin"
    own = {name: value for name, value in os.environ.items() if not name.startswith("TOCSIN_")}
    shown = subprocess.run([tocsin, "--version"], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == version
    subprocess.run([tocsin, "init"], cwd=here, env=own, check=True)
    subprocess.run([tocsin, "db", "upgrade"], cwd=here, env=own, check=True)
