"""Push page: all settings, and valid samples."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest
import structlog

from tocsin import EntityKind, MappingTemplate, Severity, Tools
from tocsin.fields import SettingsOrigin
from tocsin.mapping.mapped_incident import MappedIncident
from tocsin.testing.conformance.push_harness import combine_batches
from tocsin_connectors.siem.push import Push

PAGE = (Path(__file__).parents[2] / "docs/operators/providers/push.md").read_text(encoding="utf-8")
# What the senders put in the place of their variables
VARIABLES = {
    "{{TriggerType}}": "Warning",
    "{{TriggerTimeStart}}": "1795262280000",
    "$ALERT_CYCLE_KEY": "4113912587194027911",
    "$ALERT_PRIORITY": "P3",
    "$DATE": "1795262280000",
    "$SECURITY_SIGNAL_ID": "",
}


def section(title: str) -> str:
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def sample(title: str, language: str) -> str:
    """Return the one sample of a section."""
    [found] = re.findall(rf"^```{language}\n(.*?)^```$", section(title), re.DOTALL | re.MULTILINE)
    return found


def first_column(title: str) -> set[str]:
    rows = re.findall(r"^\| (`.*?`) \|", section(title), re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`(\w+)`", row)}


async def read(clock, body: str, **settings: str):
    written = {"plugin": "push", "token": "a-token-of-the-sender"} | settings
    parsed = Push.Settings.model_validate(written, context=SettingsOrigin().context())
    provider = Push(parsed, Tools(name="it", http=None, clock=clock, log=structlog.get_logger()))
    await provider.start()
    [found] = combine_batches(provider.unpack(body.encode(), clock.now())).incidents
    return found


def test_the_file_of_the_page_is_valid(tmp_path):
    [toml] = re.findall(r"^```toml\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets/alertmanager").write_text("a" * 64)
    table = tomllib.loads(toml)["providers"]["alertmanager"]
    assert Push.Settings.model_validate(table, context=SettingsOrigin(tmp_path).context())


@pytest.mark.parametrize(("title", "format"), [("Sumo Logic", "sumo"), ("Datadog", "datadog")])
async def test_the_payload_to_paste_is_understood(clock, title, format):  # noqa: A002 - the setting
    payload = sample(title, "json")
    for variable, value in VARIABLES.items():
        payload = payload.replace(variable, value)
    found = await read(clock, payload, format=format)
    assert (found.severity, found.severity_assumed) == (Severity.MEDIUM, False)
    assert found.occurred_at.isoformat() == "2026-11-21T11:58:00+00:00"


async def test_an_incident_of_ones_own_has_every_member_that_is_told(clock):
    body = sample("Custom scripts", "json")
    found = await read(clock, body, format="incident")
    assert (found.severity, len(found.entities), len(found.alerts)) == (Severity.HIGH, 2, 1)
    assert first_column("Custom scripts") == set(MappedIncident.model_fields)
    assert all(kind in section("Custom scripts") for kind in EntityKind)
    assert json.loads(body).keys() <= MappedIncident.model_fields.keys()


def test_the_mapping_of_the_page_reads_what_it_means(clock):
    case = {"no": 7, "headline": "Odd", "prio": 1, "done": True, "source": {"address": "192.0.2.1"}}
    mapping = MappingTemplate(sample("Custom mappings", "jinja"), source="push")
    body = json.dumps({"cases": [case, {"no": 8}], "more": 3}).encode()
    received = combine_batches(mapping.read(body, clock.now()))
    assert [one.external_id for one in received.incidents] == ["7", "8"]
    assert [one.reason for one in received.rejected] == ["the sender left out 3 cases"]
