"""Each threat of the threat model has tests, which exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
UNTESTED = {
    "Key IDs revealed by timing": "None: the risk is accepted",
    "A compromised OpenID Connect issuer": "None: the risk is accepted",
    "An incident that loops between a SIEM and a destination that feeds the SIEM": "None: Tocsin "
    "does not detect this",
    "Emails that pretend to come from Tocsin": "None: Tocsin does not detect this",
}


def read_rows(page: Path) -> list[tuple[str, str, str]]:
    """Return section, threat and second column of each row of the tables of threats."""
    rows, section, is_threats = [], "", False
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            section = line.removeprefix("## ")
        if not line.startswith("|"):
            is_threats = False
        elif line.startswith("| Threat "):
            is_threats = True
        elif is_threats and not line.startswith("|---"):
            threat, second = (cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:3])
            rows.append((section, threat, second))
    return rows


def test_every_threat_has_tests_that_exist():
    threats = read_rows(ROOT / "THREAT_MODEL.md")
    tests = read_rows(ROOT / "docs/reference/threat-tests.md")
    assert [row[:2] for row in tests] == [row[:2] for row in threats]
    untested, missing = {}, []
    for _, threat, named in tests:
        paths = re.findall(r"`([\w./]+/[\w./]+)`", named)
        if not paths:
            untested[threat] = named
        for part in named.split("; "):
            *names, path = re.findall(r"`([^`]+)`", part) or [""]
            text = (ROOT / path).read_text(encoding="utf-8") if path else ""
            missing += [name for name in names if f"def {name}(" not in text]
    assert untested == UNTESTED
    assert missing == []
