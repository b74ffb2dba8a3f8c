"""Schedules page: all settings, and correct examples."""

from __future__ import annotations

import re
import tomllib
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from tocsin import EventType
from tocsin.cli.check_report import CheckReport
from tocsin.cli.receiver_checks import check_receivers
from tocsin.conditions import Condition
from tocsin.delivery.destinations.samples import build_sample
from tocsin.delivery.rendering import Renderer
from tocsin.investigations import FailureCause
from tocsin.model import Persona
from tocsin.recurrence import Overlap, Recurrence, ScheduleDefinition
from tocsin.registry import check_configuration
from tocsin.schedules import DisabledReason, RunState, ScheduleStatus
from tocsin.schedules.admission import MAX_WAITING
from tocsin.settings import Settings
from tocsin_templates import tocsin_template_paths

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/operators/schedules.md").read_text(encoding="utf-8")
SETTINGS = PAGE.partition("\n## Settings\n")[2].partition("\n## ")[0]
CRON = re.findall(
    r"`(@\w+|[-\w*/,]+(?: [-\w*/,]+){4})`",
    PAGE.partition("### Cron")[2].partition("### Intervals")[0],
)


def samples(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def test_every_setting_is_told_once_and_no_other():
    told = re.findall(r"^\| `(\w+)` \|", SETTINGS, re.MULTILINE)
    assert told == list(ScheduleDefinition.model_fields)


def test_defaults_that_are_one_word_are_those_of_the_code():
    written = re.findall(r"^\| `(\w+)` \| `(\w+)` \|", SETTINGS, re.MULTILINE)
    assert {name for name, _ in written} == {
        "persona",
        "timezone",
        "timeout",
        "misfire_grace",
        "overlap",
    }
    plain = {"query": "x", "cron": "@daily"}
    told = ScheduleDefinition.model_validate(plain | dict(written))
    assert told == ScheduleDefinition.model_validate(plain)


@pytest.mark.parametrize("words", [Persona, Overlap, FailureCause, RunState, DisabledReason])
def test_every_word_is_told(words):
    assert [word for word in (*words, *ScheduleStatus) if f"`{word}`" not in PAGE] == []


def test_bounds_are_those_of_the_code():
    assert f"at most {MAX_WAITING} runs wait" in PAGE


@pytest.mark.parametrize("text", CRON)
def test_every_cron_expression_is_one(text):
    ScheduleDefinition(query="x", cron=text)


def fires(cron: str, since: str, zone: str = "Europe/Berlin", count: int = 3) -> list[str]:
    definition = ScheduleDefinition(query="x", cron=cron, timezone=zone)
    begin = datetime.fromisoformat(since).replace(tzinfo=UTC)
    times = Recurrence(definition, "sch_1", begin).after(begin)
    return [f"{time.at.astimezone(ZoneInfo(zone)):%a %d %H:%M}" for time in islice(times, count)]


def test_both_day_fields_are_read_as_the_page_says():
    assert fires("0 9 1,15 * mon", "2026-11-25") == ["Mon 30 09:00", "Tue 01 09:00", "Mon 07 09:00"]
    assert fires("0 9 */2 * mon", "2026-11-16") == ["Mon 23 09:00", "Mon 07 09:00", "Mon 21 09:00"]


def test_summer_time_is_as_the_page_says():
    fixed, starred, quarters = "30 2 * * *", "30 * * * *", "*/15 2 * * *"
    assert fires(fixed, "2027-03-27T12:00")[:2] == ["Sun 28 03:00", "Mon 29 02:30"]
    assert fires(fixed, "2026-10-24T12:00")[:2] == ["Sun 25 02:30", "Mon 26 02:30"]
    assert fires(starred, "2026-10-24T23:45", count=2) == ["Sun 25 02:30", "Sun 25 02:30"]
    assert fires(quarters, "2027-03-27T12:00", count=1) == ["Mon 29 02:00"]
    assert [fire[:6] for fire in fires(quarters, "2026-10-24T12:00", count=9)] == ["Sun 25"] * 8 + [
        "Mon 26"
    ]


async def test_the_file_of_the_story_is_valid(tmp_path, monkeypatch, capsys):
    for name in ("SLACK_BOT_TOKEN", "TRACKER_TOKEN"):
        monkeypatch.setenv(name, "xoxb-1-2-abc")
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets/crowdsec").write_text("a password")
    short, _, story = (sample if "[" in sample else "" for sample in samples("toml"))
    for text in (story, f"{story}\n{short}"):
        (tmp_path / "plugins.toml").write_text(text, encoding="utf-8")
        configuration, problems = await check_configuration(tmp_path / "plugins.toml")
        assert problems == []
        report = CheckReport(configuration.path)
        check_receivers(configuration, Settings(), report)
        assert report.passed, capsys.readouterr().err


@pytest.mark.parametrize("kind", [EventType.INVESTIGATION_FAILED, EventType.SCHEDULE_DISABLED])
def test_what_the_desk_reads_is_what_the_page_says(kind, clock):
    event = build_sample(kind, "https://tocsin.example.org", clock.now())
    event.data.update(consecutive_failures=5, error="cannot connect", last_error="cannot connect")
    told = Renderer(list(map(Path, tocsin_template_paths()))).render("slack", event).decode()
    words = ["5 failures in a row", "cannot connect"]
    if kind is EventType.SCHEDULE_DISABLED:
        words.append("Until then, it does not run.")
    assert [word for word in words if word not in told] == []


@pytest.mark.parametrize("text", re.findall(r'^when = "(.*)"$', PAGE, re.MULTILINE))
def test_every_condition_can_be_decided_for_every_event(clock, text):
    for kind in EventType:
        event = build_sample(kind, "https://tocsin.example.org", clock.now())
        told = {"schedule": {"tags": ["night"]}}
        variables = {"event_type": kind.value, "data": event.data, "subject": event.subject}
        assert Condition(text).holds({**variables, "context": told}) in {True, False}


def test_the_shipped_file_has_every_setting_with_its_default():
    text = (ROOT / "plugins.toml").read_text(encoding="utf-8")
    block = text.partition("# [schedules.nightly-hunt]\n")[2].partition("\n\n")[0]
    table = tomllib.loads(re.sub(r"^# *", "", block, flags=re.MULTILINE))
    assert set(table) == set(ScheduleDefinition.model_fields)
    del table["interval"]  # it stands for `cron`
    written = ScheduleDefinition.model_validate(table)
    for name in ("timezone", "persona", "timeout", "misfire_grace", "overlap"):
        assert getattr(written, name) == ScheduleDefinition.model_fields[name].default
    assert written.jitter == timedelta(minutes=5)
