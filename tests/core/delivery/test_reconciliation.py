"""Making the destinations those of a file."""

from __future__ import annotations

import copy
import tomllib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.delivery.destinations.lifecycle import (
    DestinationSpec,
    change_destination,
    create_destination,
)
from tocsin.delivery.destinations.reconciliation import (
    apply_destinations,
    list_configured_destinations,
    plan_destinations,
)
from tocsin.delivery.destinations.repository import (
    Destination,
    DestinationState,
    StopReason,
    load_destination,
    load_destinations,
)
from tocsin.errors import OperatorError
from tocsin.registry import ManagedBy, PlannedChange, load_configuration

from .conftest import destination

SECRET = "whsec_" + "QUJD" * 10


def soc(name: str = "soc", **settings) -> DestinationSpec:
    table = {"plugin": "webhook", "url": "https://soc.example.org/", **settings}
    return DestinationSpec(name, "webhook", table, ManagedBy.FILE)


@pytest.fixture
def apply_now(database, clock):
    async def apply_now(*wanted: DestinationSpec) -> list[tuple[str, str]]:
        steps = await database.write(apply_destinations, wanted, "ana", clock.now())
        return [(step.name, step.action) for step in steps]

    return apply_now


@pytest.fixture
def load(database):
    async def load(name: str = "soc") -> Destination:
        return await database.read(load_destination, name)

    return load


@pytest.fixture
def put(database, clock):
    """Make a destination what it would become otherwise."""

    async def put(name: str = "soc", **members) -> None:
        def work(connection) -> None:
            found = load_destination(connection, name)
            change_destination(connection, replace(found, **members), clock.now())

        await database.write(work)

    return put


async def test_a_file_is_applied_once(apply_now, load):
    assert await apply_now(soc(), soc("desk")) == [("desk", "create"), ("soc", "create")]
    assert await apply_now(soc("desk"), soc()) == []
    made = await load()
    assert (made.managed_by, made.created_by, made.revision) == (ManagedBy.FILE, "ana", 1)


async def test_what_a_file_has_otherwise_is_changed(apply_now, load):
    await apply_now(soc())
    assert await apply_now(soc(timeout="9s")) == [("soc", "change")]
    changed = await load()
    assert (changed.settings["timeout"], changed.revision) == ("9s", 2)
    other = DestinationSpec("soc", "email", {"plugin": "email"}, ManagedBy.FILE)
    assert await apply_now(other) == [("soc", "change")]
    assert (await load()).plugin == "email"


async def test_a_manual_stop_outlives_a_file_that_is_applied(apply_now, load, put):
    await apply_now(soc())
    await put(state=DestinationState.DISABLED, reason=StopReason.MANUAL)
    assert await apply_now(soc()) == []
    assert await apply_now(soc(timeout="9s")) == [("soc", "change")]
    stopped = await load()
    assert (stopped.state, stopped.reason) == (DestinationState.DISABLED, StopReason.MANUAL)
    assert stopped.settings["timeout"] == "9s"


async def test_what_vanished_is_disabled_and_restored_when_it_is_back(apply_now, load):
    await apply_now(soc())
    assert await apply_now() == [("soc", "disable")]
    removed = await load()
    assert (removed.state, removed.reason) == (DestinationState.DISABLED, StopReason.REMOVED)
    assert not removed.is_routed
    assert await apply_now() == []
    assert await apply_now(soc()) == [("soc", "restore")]
    restored = await load()
    assert (restored.state, restored.reason) == (DestinationState.ACTIVE, None)


async def test_what_is_back_otherwise_is_restored_as_it_is_now(apply_now, load):
    await apply_now(soc())
    await apply_now()
    assert await apply_now(soc(timeout="9s")) == [("soc", "change")]
    restored = await load()
    assert (restored.state, restored.settings["timeout"]) == (DestinationState.ACTIVE, "9s")


async def test_a_receiver_that_is_gone_stays_so_until_the_file_changes(apply_now, load, put):
    await apply_now(soc())
    await put(state=DestinationState.DISABLED, reason=StopReason.GONE, detail="410")
    assert await apply_now(soc()) == []
    assert (await load()).reason is StopReason.GONE
    assert await apply_now(soc(timeout="9s")) == [("soc", "change")]
    lifted = await load()
    assert (lifted.state, lifted.reason, lifted.detail) == (DestinationState.ACTIVE, None, None)


async def test_a_pause_outlives_the_same_file(apply_now, load, put):
    await apply_now(soc())
    await put(state=DestinationState.PAUSED, reason=StopReason.FAILING)
    assert await apply_now(soc()) == []
    assert (await load()).state is DestinationState.PAUSED


async def test_what_was_made_over_http_is_left_alone(apply_now, load, database, clock):
    made = DestinationSpec(
        "desk", "webhook", {"url": "https://desk.example.org/"}, ManagedBy.API, b"x"
    )
    await database.write(create_destination, made, "ana", clock.now())
    before = await load("desk")
    assert await apply_now(soc()) == [("soc", "create")]
    assert await apply_now() == [("soc", "disable")]
    assert await load("desk") == before


async def test_a_name_that_was_taken_over_http_is_refused_and_nothing_applied(
    apply_now, database, clock
):
    made = DestinationSpec("soc", "webhook", {}, ManagedBy.API, b"x")
    await database.write(create_destination, made, "ana", clock.now())
    with pytest.raises(OperatorError, match=r"destinations\.soc: .* created over the API"):
        await apply_now(soc("alpha"), soc())
    assert [destination.name for destination in await database.read(load_destinations)] == ["soc"]


async def test_a_deleted_name_is_free_for_a_file(apply_now, load, put):
    await apply_now(soc())
    await put(state=DestinationState.DELETED, reason=None, managed_by=ManagedBy.API)
    assert await apply_now(soc()) == [("soc", "create")]
    assert ((await load()).managed_by, (await load()).state) == (
        ManagedBy.FILE,
        DestinationState.ACTIVE,
    )


async def test_what_toml_alone_can_hold_is_no_difference(apply_now):
    table = tomllib.loads("plugin = 'x'\nsince = 2026-11-21\nat = 05:33:01")
    written = DestinationSpec("soc", "x", table, ManagedBy.FILE)
    assert await apply_now(written) == [("soc", "create")]
    assert await apply_now(written) == []


async def test_a_configuration_comes_to_destinations_and_observers(tmp_path, monkeypatch):
    monkeypatch.setenv("SOC_SECRET", SECRET)
    path = tmp_path / "plugins.toml"
    path.write_text(
        'enabled = ["webhook"]\n[destinations.soc]\nplugin = "webhook"\n'
        'url = "https://soc.example.org/"\nsecret = { env = "SOC_SECRET" }\n'
    )
    configuration = await load_configuration(path)
    configuration = replace(configuration, observers={"enricher": {"tocsin_event": print}})
    listed, heard = list_configured_destinations(configuration)
    assert (listed.name, listed.managed_by) == ("soc", ManagedBy.FILE)
    assert listed.settings["secret"] == {"env": "SOC_SECRET"}
    assert SECRET not in str(listed)
    assert (heard.name, heard.managed_by) == ("hook:enricher", ManagedBy.PLUGIN)


NAMES = st.sampled_from(["a", "b", "c"])
FILES = st.dictionaries(NAMES, st.sampled_from(["1s", "2s"]))


def in_memory(
    known: dict[str, Destination], wanted: list[DestinationSpec]
) -> dict[str, Destination]:
    """Return what the steps of a plan make of the destinations."""
    result, written = copy.copy(known), {written.name: written for written in wanted}
    for step in plan_destinations(list(known.values()), wanted):
        if step.action == "disable":
            stopped = {"state": DestinationState.DISABLED, "reason": StopReason.REMOVED}
            result[step.name] = replace(known[step.name], **stopped)
        else:
            made = written[step.name]
            result[step.name] = destination(
                step.name, plugin=made.plugin, settings=dict(made.settings)
            )
    return result


@given(st.lists(FILES, max_size=5))
def test_whatever_files_follow_each_other_the_last_one_is_what_is_served(files):
    known: dict[str, Destination] = {}
    for file in files:
        wanted = [soc(name, timeout=timeout) for name, timeout in file.items()]
        known = in_memory(known, wanted)
        served = {
            destination.name: destination.settings["timeout"]
            for destination in known.values()
            if destination.is_served
        }
        assert served == file
        assert plan_destinations(list(known.values()), wanted) == []


def test_steps_come_by_name():
    steps = plan_destinations([destination("b")], [soc("c"), soc("a")])
    expected = [("a", "create"), ("b", "disable"), ("c", "create")]
    assert steps == [PlannedChange("destinations", name, action) for name, action in expected]
