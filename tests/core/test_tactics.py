"""ATT&CK tactics: IDs and names, and their order."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from tocsin import parse_tactics, sort_tactics
from tocsin.model import TACTICS, name_tactic

TEMPLATES = Path(__file__).parents[2] / "templates" / "tocsin_templates"


@pytest.mark.parametrize(
    "written",
    [
        *("TA0006", "ta0006", "Credential Access", "CredentialAccess", "credential-access"),
        *("attack.credential_access", " CREDENTIAL ACCESS "),
    ],
)
def test_tactics_are_known_by_id_and_by_name(written):
    assert list(parse_tactics([written])) == ["TA0006"]


def test_other_words_are_no_tactics():
    others = ["T1110", "", "Malware", "SuspiciousActivity", "CSTA0004", "PreAttack"]
    assert list(parse_tactics(others)) == []
    assert list(parse_tactics(["TA0109", "C2"])) == ["TA0109", "TA0011"]


def test_tactics_come_in_the_order_of_an_attack():
    found = sort_tactics(["TA0040", "TA0099", "TA0001", "TA0011", "TA0001"])
    assert found == ["TA0001", "TA0011", "TA0040", "TA0099"]
    assert [name_tactic(tactic) for tactic in found[:3:2]] == ["Initial Access", "Impact"]


def test_templates_have_the_same_names():
    template = (TEMPLATES / "_shared" / "tactics.json.j2").read_text()
    names = template.partition("{% set names = ")[2].partition(" %}")[0]
    assert orjson.loads(names) == TACTICS
