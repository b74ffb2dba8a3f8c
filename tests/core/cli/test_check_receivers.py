"""What `tocsin check` says of destinations that do not suit their receiver."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

import tocsin_templates
from receiver_pages import ALL, PAGES
from tocsin.cli.check_report import CheckReport
from tocsin.cli.receiver_checks import check_receivers
from tocsin.registry import check_configuration
from tocsin.settings import Settings

[_SHIPPED] = map(Path, tocsin_templates.tocsin_template_paths())
THEHIVE = _SHIPPED / "thehive"
SECRET = "whsec_" + "QUJD" * 10
HEAD = 'enabled = ["email", "slack", "templates", "thehive", "ticketing", "webhook"]\n'
WEBHOOK = 'plugin = "webhook"\nurl = "https://soar.example.com/x"\nsecret = { env = "SECRET" }\n'
HIVE = 'plugin = "thehive"\nurl = "https://thehive.example.com"\napi_key = { env = "TOKEN" }\n'
TICKETS = (
    'plugin = "ticketing"\ntracker = "github"\nurl = "https://api.github.com"\n'
    'project = "acme/soc"\nsecret = { env = "TOKEN" }\n'
)


@pytest.fixture
def receivers(tmp_path, monkeypatch, capsys):
    """Return what is said of one destination."""
    monkeypatch.setenv("SECRET", SECRET)
    monkeypatch.setenv("TOKEN", "a token of theirs")
    templates = tmp_path / "templates"

    async def receivers(destination: str) -> list[str]:
        (tmp_path / "plugins.toml").write_text(f"{HEAD}[destinations.soc]\n{destination}")
        configuration, problems = await check_configuration(
            tmp_path / "plugins.toml", templates_dir=templates if templates.is_dir() else None
        )
        report = CheckReport(tmp_path / "plugins.toml")
        check_receivers(configuration, Settings(), report)
        captured = capsys.readouterr()
        assert report.passed == (captured.err == "")
        lines = (captured.out + captured.err).splitlines()
        return [*map(str, problems), *lines]

    return receivers


def page_of(receiver: str) -> str:
    return (PAGES / f"{receiver}.md").read_text(encoding="utf-8")


def said(lines: list[str], setting: str) -> list[str]:
    place = re.compile(rf"(?:plugins\.toml:\d+: )?destinations\.soc\.{setting}: ")
    return [place.sub("", line, count=1) for line in lines if place.match(line)]


@pytest.mark.parametrize(
    ("told", "setting", "words"),
    [
        ('template = "pagerduty"', "body_secrets", "PagerDuty requires 'routing_key', which is"),
        (
            'template = "pagerduty"\nbody_secrets = { routing_kye = { env = "TOKEN" } }',
            "body_secrets",
            "found 'routing_kye', but PagerDuty requires 'routing_key'; did you mean",
        ),
        ('template = "thehive"', "headers", "TheHive requires 'Authorization', which is missing;"),
        (
            'template = "thehive"\nheaders = { Authorisation = { env = "TOKEN" } }',
            "headers",
            "found 'Authorisation', but TheHive requires 'Authorization'; did you mean",
        ),
        (
            'template = "gitlab"\nheaders = { Authorization = { env = "TOKEN" } }',
            "headers",
            "hint: GitLab issues requires 'PRIVATE-TOKEN', which is missing;",
        ),
        ('template = "n8n"', "headers", "hint: n8n requires 'X-N8n-Secret', which is missing;"),
        (
            'template = "slack"',
            "url",
            "hint: it is in plain text, and anyone who knows it can post to Slack",
        ),
        ('template = "email"', "plugin", "'webhook' cannot deliver to Email; set plugin ="),
    ],
)
async def test_a_webhook_without_what_its_receiver_wants_is_told(receivers, told, setting, words):
    [line] = said(await receivers(WEBHOOK + told), setting)
    assert line.startswith(words)


@pytest.mark.parametrize(
    "told",
    [
        "",
        'template = "tines"',
        'template = "pagerduty"\nbody_secrets = { routing_key = { env = "TOKEN" } }',
        'template = "thehive"\nheaders = { authorization = { env = "TOKEN" } }',
        'template = "n8n"\nheaders = { X-Ours = "soc" }',
    ],
)
async def test_what_suits_its_receiver_is_told_nothing(receivers, told):
    assert await receivers(WEBHOOK + told) == []


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (
            f'{HIVE}template = "tines"',
            "'tines' is for Tines, but this channel sends to TheHive; remove the setting",
        ),
        (
            f'{TICKETS}template = "jira"',
            "'jira' is for Jira, but this channel sends to GitHub issues;",
        ),
    ],
)
async def test_a_channel_that_knows_one_receiver_takes_no_templates_of_another(
    receivers, told, words
):
    [line] = said(await receivers(told), "template")
    assert line.startswith(words)


async def test_templates_of_ones_own_for_the_same_receiver_are_taken(receivers, tmp_path):
    ours = tmp_path / "templates/our-hive"
    ours.mkdir(parents=True)
    shutil.copy(THEHIVE / "contract.toml", ours)
    for event in ("incident-alert", "investigation-completed"):
        text = f'{{% extends "shipped/thehive/{event}.json.j2" %}}'
        (ours / f"{event}.json.j2").write_text(text)
    events = 'events = ["incident-alert", "investigation-completed"]'
    told = f'{HIVE}template = "our-hive"\n{events}'
    lines = await receivers(told)
    assert said(lines, "template") == []
    assert not [line for line in lines if "our-hive" in line]


@pytest.mark.parametrize("template", ["broken", "no-such"])
async def test_what_is_wrong_for_every_event_is_said_once(receivers, tmp_path, template):
    (tmp_path / "templates/broken").mkdir(parents=True)
    (tmp_path / "templates/broken/contract.toml").write_text("name =")
    told = f'{WEBHOOK}template = "{template}"'
    lines = await receivers(told)
    assert len([line for line in lines if template in line]) == 1


async def test_a_file_whose_name_is_nearly_one_that_counts_is_told(receivers, tmp_path):
    for name in (
        "tinse/incident-alert.json.j2",
        "tines/incident-alerts.json.j2",
        "tines/incident-alert.json",
        "tines/schedule-disabled.json.j2",
        "tines/_body2.json.j2",
        "tines/ours.json.j2",
        "our-soar/incident-alert.json.j2",
    ):
        path = tmp_path / "templates" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
    told = await receivers(WEBHOOK)
    places = [line.removeprefix(f"{tmp_path}/templates/").replace("hint: ", "") for line in told]
    assert places == [
        "tines/incident-alert.json: unused; did you mean 'incident-alert.json.j2'?",
        "tines/incident-alerts.json.j2: unused; did you mean 'incident-alert.json.j2'?",
        "tinse: unused; did you mean 'tines'?",
    ]


@pytest.mark.parametrize(
    "receiver", [name for name in ALL if 'plugin = "webhook"' in page_of(name)]
)
async def test_the_destination_on_the_page_of_a_receiver_suits_it(receivers, monkeypatch, receiver):
    """Its variables hold something that is long enough for all of them."""
    text = page_of(receiver).partition("```toml\n")[2].partition("```")[0]
    given = re.sub(r"<.*?>", "x", text.partition("\n")[2])
    given = re.sub(r'\{ file = ".*?" \}', '{ env = "SECRET" }', given)
    for name in re.findall(r'env = "(\w+)"', given):
        if name != "SECRET":
            monkeypatch.setenv(name, "https://soar.example.com/secret")
    assert await receivers(given) == []
