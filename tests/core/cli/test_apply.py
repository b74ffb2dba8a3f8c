"""`tocsin apply`, as an operator runs it, and what nodes make of a file that was not applied."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from getpass import getuser
from pathlib import Path

import pytest
from aiohttp.test_utils import TestClient, TestServer
from cryptography.fernet import Fernet
from sqlalchemy import delete, select
from typer.testing import CliRunner

from tocsin.cli import app
from tocsin.clock import SystemClock
from tocsin.delivery import (
    DestinationSpec,
    DestinationState,
    StopReason,
    count_missed_events,
    load_destination,
)
from tocsin.delivery.destinations.lifecycle import create_destination
from tocsin.errors import OperatorError
from tocsin.events import emit_events, mark_routed
from tocsin.model import Event, EventType
from tocsin.node import open_node
from tocsin.recurrence import ScheduleDefinition
from tocsin.registry import ManagedBy
from tocsin.schedules import DisabledReason, Schedule, create_schedule, disable_schedule
from tocsin.schedules.records import load_schedules
from tocsin.settings import Settings
from tocsin.stops import StopKind, StopOrder, begin_stop
from tocsin.store.tables import audit, destinations, events, schedules, sequences

SECRET = "whsec_" + "QUJD" * 10


@pytest.fixture
def write(tmp_path):
    """Write a `plugins.toml` with these destinations, each with settings of its own."""

    def write(**settings: str) -> Path:
        tables = (
            f'[destinations.{name}]\nplugin = "webhook"\nurl = "https://{name}.example.org/"\n'
            f'secret = {{ env = "SOC_SECRET" }}\n{more}\n'
            for name, more in settings.items()
        )
        path = tmp_path / "plugins.toml"
        path.write_text('enabled = ["webhook"]\n' + "".join(tables))
        return path

    return write


@pytest.fixture
def write_schedules(tmp_path):
    """Have `plugins.toml` name these schedules besides, each with settings of its own."""

    def write_schedules(**settings: str) -> None:
        path = tmp_path / "plugins.toml"
        before = path.read_text().partition("[schedules.")[0] if path.exists() else ""
        tables = (
            f'[schedules.{name}]\nquery = "new logins"\n'
            + ("" if "cron" in more else 'interval = "1h"\n')
            + f"{more}\n"
            for name, more in settings.items()
        )
        path.write_text(before + "".join(tables))

    return write_schedules


@pytest.fixture
def load(database):
    """Return a schedule by its name."""

    async def load(name: str) -> Schedule:
        return {schedule.name: schedule for schedule in await database.read(load_schedules)}[name]

    return load


@pytest.fixture
def run(migrated_url, tmp_path):
    """Run `tocsin apply`, and return its status and what it printed, or why it was refused."""
    own = {
        "TOCSIN_DATABASE_URL": migrated_url.render_as_string(hide_password=False),
        "TOCSIN_PLUGINS_FILE": str(tmp_path / "plugins.toml"),
        "SOC_SECRET": SECRET,
    }

    async def run(*arguments: str, **variables: str) -> tuple[int, str]:
        invoke = partial(CliRunner().invoke, app, ["apply", *arguments], env=own | variables)
        result = await asyncio.to_thread(invoke)
        if isinstance(result.exception, OperatorError):
            assert result.stdout == ""
            return 2, str(result.exception)
        run.notes = result.stderr
        return result.exit_code, result.stdout

    return run


async def test_it_shows_what_it_took_and_a_second_time_nothing(run, write, database):
    write(soc="", desk="")
    assert await run() == (0, "destinations\tdesk\tcreate\ndestinations\tsoc\tcreate\n")
    assert await run() == (0, "")
    write(soc='timeout = "9s"')
    assert await run() == (0, "destinations\tdesk\tdisable\ndestinations\tsoc\tchange\n")
    write(soc='timeout = "9s"', desk="")
    status, out = await run("--json")
    restored = {"section": "destinations", "name": "desk", "action": "restore"}
    assert (status, json.loads(out)) == (0, [restored])
    made = await database.read(load_destination, "soc")
    assert made.settings["secret"] == {"env": "SOC_SECRET"}
    assert (made.created_by, made.revision) == (f"local:{getuser()}", 2)


async def test_stops_that_stay_in_force_are_named(run, write, database, clock):
    write(soc="")
    await run()
    order = StopOrder(by="ana", reason="flood")
    await database.write(begin_stop, StopKind.DESTINATION, "soc", order, clock.now())
    write(soc='timeout = "9s"')
    status, out = await run()
    assert (status, out) == (0, "destinations\tsoc\tchange\n")
    assert run.notes == (
        "destinations.soc: still disabled by ana (reason: flood), until someone enables it; "
        "to enable it, run `tocsin destinations enable soc`\n"
    )


async def test_each_step_is_an_entry_of_the_audit_log(run, write, database):
    write(soc="")
    await run()
    write(soc='timeout = "9s"')
    await run()
    write()
    await run()
    write(soc="")
    await run()
    query = select(audit.c.actor, audit.c.action, audit.c.target).order_by(audit.c.id)
    entries = await database.read(lambda connection: connection.execute(query).all())
    who = f"local:{getuser()}"
    actions = ("create", "change", "disable", "change")
    expected = [(who, f"destination.{action}", "destination:soc") for action in actions]
    assert [tuple(entry) for entry in entries] == expected


async def test_a_dry_run_does_nothing(run, write, write_schedules, database):
    write(soc="")
    write_schedules(hourly="")
    steps = "destinations\tsoc\tcreate\nschedules\thourly\tcreate\n"
    assert await run("--dry-run") == (0, steps)
    for table in (destinations, schedules, audit):
        query = select(table)
        assert await database.read(lambda c, query=query: c.execute(query).all()) == []


async def test_what_cannot_be_applied_changes_nothing(run, write, database, clock):
    api = DestinationSpec("soc", "webhook", {}, ManagedBy.API, b"x")
    await database.write(create_destination, api, "ana", clock.now())
    write(alpha="", soc="")
    status, words = await run()
    assert status == 2
    assert "destinations.soc: a destination with this name was created over the API" in words
    write(alpha="", beta='timeout = "soon"')
    status, words = await run()
    assert status == 2
    assert "destinations.beta.timeout" in words
    assert await database.read(load_destination, "alpha") is None


async def test_schedules_are_made_and_changed_as_the_file_says(
    run, write_schedules, load, database
):
    write_schedules(hourly="", vpn='cron = "@daily"')
    assert await run() == (0, "schedules\thourly\tcreate\nschedules\tvpn\tcreate\n")
    assert await run() == (0, "")
    made = await load("hourly")
    assert (made.managed_by, made.created_by) == (ManagedBy.FILE, f"local:{getuser()}")
    write_schedules(hourly='timeout = "5m"', vpn='cron = "@daily"\npersona = "Analyst"')
    assert await run() == (0, "schedules\thourly\tchange\n")
    changed = await load("hourly")
    assert (changed.document["timeout"], changed.revision) == ("PT5M", 2)
    assert changed.next_run_at == made.next_run_at


async def test_a_schedule_that_vanished_is_disabled_until_the_file_names_it_again(
    run, write_schedules, load
):
    write_schedules(hourly="")
    await run()
    write_schedules()
    assert await run() == (0, "schedules\thourly\tdisable\n")
    assert await run() == (0, "")
    removed = await load("hourly")
    assert (removed.is_removed, removed.next_run_at) == (True, None)
    write_schedules(hourly="")
    assert await run() == (0, "schedules\thourly\trestore\n")
    restored = await load("hourly")
    assert (restored.id, restored.is_active) == (removed.id, True)
    assert restored.next_run_at is not None
    write_schedules()
    await run()
    write_schedules(hourly='timeout = "5m"')
    assert await run() == (0, "schedules\thourly\tchange\n")
    assert (await load("hourly")).is_active


async def test_a_schedule_that_someone_disabled_stays_so_whatever_the_file_says(
    run, write_schedules, load, database, clock
):
    write_schedules(hourly="")
    await run()

    def stop(connection) -> None:
        [schedule] = load_schedules(connection, lock=True)
        disable_schedule(connection, schedule, DisabledReason.MANUAL, clock.now())

    await database.write(stop)
    write_schedules(hourly='timeout = "5m"')
    assert await run() == (0, "schedules\thourly\tchange\n")
    changed = await load("hourly")
    assert (changed.disabled_reason, changed.next_run_at) == (DisabledReason.MANUAL, None)


async def test_a_name_that_was_taken_over_http_is_refused_and_nothing_applied(
    run, write_schedules, load, database, clock
):
    definition = ScheduleDefinition(query="new logins", interval="1h")
    members = {"managed_by": ManagedBy.API, "by": "ana", "now": clock.now()}
    await database.write(create_schedule, "hourly", definition, **members)
    write_schedules(alpha="", hourly="")
    status, words = await run()
    assert status == 2
    assert "schedules.hourly: a schedule with this name was created over the API" in words
    with pytest.raises(KeyError):
        await load("alpha")
    write_schedules(alpha="")
    assert await run() == (0, "schedules\talpha\tcreate\n")
    assert (await load("hourly")).managed_by is ManagedBy.API


async def test_each_step_of_a_schedule_is_an_entry_of_the_audit_log(run, write_schedules, database):
    for tables in ({"hourly": ""}, {"hourly": 'timeout = "5m"'}, {}, {"hourly": 'timeout = "5m"'}):
        write_schedules(**tables)
        await run()
    query = select(audit.c.action, audit.c.target).order_by(audit.c.id)
    entries = await database.read(lambda connection: connection.execute(query).all())
    actions = ("create", "change", "disable", "enable")
    [made] = await database.read(load_schedules)
    expected = [(f"schedule.{action}", f"schedule:{made.id}") for action in actions]
    assert [tuple(entry) for entry in entries] == expected


async def differing(settings: Settings) -> list[str]:
    """Return what a node says that its file has otherwise."""
    async with (
        open_node(settings) as node,
        TestClient(TestServer(node.app)) as client,
        client.get("/readyz") as response,
    ):
        return (await response.json())["differing"]


@pytest.fixture
def settings(migrated_url, tmp_path, monkeypatch) -> Settings:
    monkeypatch.setenv("SOC_SECRET", SECRET)
    return Settings(
        database_url=migrated_url.render_as_string(hide_password=False),
        plugins_file=tmp_path / "plugins.toml",
        data_dir=tmp_path / "data",
        encryption_key=Fernet.generate_key().decode(),
    )


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
async def test_a_node_says_what_was_not_applied_and_works_by_what_was(
    run, write, write_schedules, settings, database
):
    write(soc="", desk="")
    write_schedules(hourly="")
    made = ["destinations.desk", "destinations.soc", "schedules.hourly"]
    assert await differing(settings) == [f"{name}: create" for name in made]
    await run()
    assert await differing(settings) == []
    write(soc='timeout = "9s"')
    assert await differing(settings) == [
        "destinations.desk: disable",
        "destinations.soc: change",
        "schedules.hourly: disable",
    ]
    assert (await database.read(load_destination, "desk")).state is DestinationState.ACTIVE


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
async def test_a_node_is_not_ready_until_any_file_was_applied(run, write, settings, database):
    write()
    name = sequences.c.name == "configuration_applied_from"
    await database.write(lambda connection: connection.execute(delete(sequences).where(name)))

    async def ask() -> tuple[int, str | None]:
        async with client.get("/readyz") as response:
            return response.status, (await response.json())["routing_on_hold"]

    async with open_node(settings) as node, TestClient(TestServer(node.app)) as client:
        node.state.roles.update(dict.fromkeys(node.state.roles, True))
        status, reason = await ask()
        assert (status, "run `tocsin apply`" in str(reason)) == (503, True)
        assert await run() == (0, "")  # a file without destinations counts
        await node._maintain()
        assert await ask() == (200, None)


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_node_that_is_alone_applies_its_file_itself(
    write, write_schedules, load, settings, database
):
    write(soc="")
    write_schedules(hourly="")
    assert await differing(settings) == []
    assert (await load("hourly")).is_active
    write()
    assert await differing(settings) == []
    assert (await load("hourly")).is_removed
    assert (await database.read(load_destination, "soc")).reason is StopReason.REMOVED


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_templates_of_ones_own_are_known_to_the_file(run, write, tmp_path):
    own = tmp_path / "own"
    write(soc='template = "pager"')
    status, words = await run(TOCSIN_TEMPLATES_DIR=str(own))
    assert (status, "TOCSIN_TEMPLATES_DIR" in words) == (2, True)
    (own / "pager").mkdir(parents=True)
    assert "unknown template 'pager'" in (await run())[1]
    assert await run(TOCSIN_TEMPLATES_DIR=str(own)) == (0, "destinations\tsoc\tcreate\n")


async def test_what_nobody_got_before_the_first_application_is_named_and_sent(run, write, database):
    write(soc="")
    early = Event(
        id="evt_1",
        event_type=EventType.INCIDENT_ALERT,
        timestamp=SystemClock().now(),
        data={},
        subject="incident:1",
    )

    def route_too_early(connection) -> None:
        name = sequences.c.name == "configuration_applied_from"
        connection.execute(sequences.delete().where(name))
        emit_events(connection, [early])
        mark_routed(connection, [early])

    await database.write(route_too_early)
    assert await run() == (0, "destinations\tsoc\tcreate\n")
    assert await database.read(count_missed_events) == 1
    status, words = await run("--dry-run", "--send-missed")
    assert (status, "--send-missed" in words) == (2, True)
    assert await run("--send-missed") == (0, "")
    assert await database.read(count_missed_events) == 0
    waiting = select(events.c.id).where(events.c.routed.is_(False))
    assert await database.read(lambda c: c.scalars(waiting).all()) == ["evt_1"]
