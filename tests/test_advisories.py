"""Known vulnerabilities are found in a copy of advisories, without a network."""

from __future__ import annotations

import json

import pytest

from advisories import find_vulnerabilities, read_pins

PINS = read_pins("""
aiohttp==3.14.5 \\
    --hash=sha256:00
Ruamel.YAML[x]==0.18 ; python_version < "3.13"
""")


def record(name: str = "aiohttp", **affected) -> dict:
    package = {"ecosystem": "PyPI", "name": name}
    return {"id": "PYSEC-1", "aliases": ["CVE-1"], "affected": [{"package": package, **affected}]}


def between(*events: dict) -> dict:
    return {"ranges": [{"type": "ECOSYSTEM", "events": list(events)}]}


@pytest.mark.parametrize(
    ("advisory", "is_found"),
    [
        (record(versions=["3.14.4", "3.14.5"]), True),
        (record(versions=["3.14.4"]), False),
        (record("AIOHTTP", versions=["3.14.5.0"]), True),
        (record("ruamel-yaml", versions=["0.18"]), True),
        (record("django", versions=["3.14.5"]), False),
        (record(**between({"introduced": "0"}, {"fixed": "3.14.6"})), True),
        (record(**between({"introduced": "0"}, {"fixed": "3.14.5"})), False),
        (record(**between({"introduced": "3.15"})), False),
        (record(**between({"introduced": "0"}, {"last_affected": "3.14.5"})), True),
        (record(**between({"introduced": "0"}, {"fixed": "3.1"}, {"introduced": "3.14"})), True),
        (record(versions=["3.14.5"]) | {"withdrawn": "2026-01-01T00:00:00Z"}, False),
    ],
)
def test_an_advisory_concerns_the_versions_that_it_names(tmp_path, advisory, is_found):
    (tmp_path / "aiohttp").mkdir()
    (tmp_path / "aiohttp" / "PYSEC-1.yaml").write_text(json.dumps(advisory))
    _, found = find_vulnerabilities(tmp_path, PINS)
    assert bool(found) == is_found
    assert all("PYSEC-1 (CVE-1)" in line for line in found)


def test_a_folder_without_advisories_finds_nothing_and_says_how_many_it_read(tmp_path):
    assert find_vulnerabilities(tmp_path, PINS) == (0, [])
