"""Reports of broken rules."""

from __future__ import annotations

import asyncio
import gc
import inspect
import os
import subprocess
import sys
import time
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from broken import ExampleConformance, broken_rules
from broken_others import BlocksForEachRecord
from pydantic import Field
from tocsin_example.provider import ExampleProvider

import tocsin
from tocsin import Duration, Tracker, Window
from tocsin.testing.conformance import exempt
from tocsin.testing.conformance.loop_blocks import LoopBlocked, run_watched
from tocsin.testing.conformance.rules import RuleBroken
from tocsin_plugins.ticketing import Ticketing

SUITE = """
from tocsin import Provider
from broken import ExampleConformance
from broken_records import RejectsNul


class TestBroken(ExampleConformance):
    provider = RejectsNul


class Confused(ExampleConformance.simulator):
    async def list_cases(self, request):
        return self.json({"cases": [{}["changed"]]})


class TestConfused(ExampleConformance):
    simulator = Confused


class TestUnfinished(ExampleConformance):
    class provider(Provider):
        pass


class TestOdd(ExampleConformance):
    class provider(ExampleConformance.provider):
        async def check(self):
            return 1 / 0
"""


def run(path: Path, rule: str) -> str:
    """Return the output of pytest for one rule, with only the plugins of Tocsin loaded."""
    path.joinpath("test_suite.py").write_text(SUITE)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "-k", rule]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    environment.pop("PYTEST_ADDOPTS", None)
    done = subprocess.run(
        [*command, "--rootdir", path, "-c", os.devnull, path / "test_suite.py"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stdout


@pytest.mark.full
def test_a_broken_rule_is_reported_in_its_own_words(tmp_path):
    output = run(tmp_path, "TestBroken and hostile")
    documented = inspect.getdoc(ExampleConformance.test_hostile_text_is_read)
    statement, reason = (" ".join(part.split()) for part in documented.split("\n\n"))
    assert f"Rule: {statement}" in output
    assert f"Why: {reason}" in output
    assert "Seen: incident 1001 did not arrive; rejected: NUL in the title" in output
    assert "rules.py" not in output


@pytest.mark.full
def test_skipped_rules_are_summed_up(tmp_path):
    output = run(tmp_path, "TestOdd and (refused_details or required_field)")
    assert "3 rules of conformance suites were skipped" in output
    assert "   2  the provider declares no record contracts" in output
    assert "   1  the provider does not override `complete`" in output


@pytest.mark.full
def test_a_bug_of_the_provider_is_reported_with_its_traceback(tmp_path):
    output = run(tmp_path, "TestOdd and check_without_problems")
    assert "Seen: ZeroDivisionError: division by zero" in output
    assert "return 1 / 0" in output


@pytest.mark.full
def test_a_bug_of_the_simulator_is_reported_with_its_traceback(tmp_path):
    output = run(tmp_path, "TestConfused and every_page")
    assert "a handler of the simulator raised KeyError: 'changed'" in output
    assert '{}["changed"]' in output


@pytest.mark.full
def test_a_provider_that_lacks_methods_is_reported_with_them(tmp_path):
    output = run(tmp_path, "TestUnfinished and every_page")
    assert "Seen: provider is abstract: it lacks check, read" in output
    assert "Traceback" not in output


def test_a_provider_that_never_ends_breaks_a_rule(monkeypatch):
    class Endless(ExampleProvider):
        async def check(self):
            while True:
                await self.tools.http.request("GET", self.settings.url)

    class Suite(ExampleConformance):
        provider = Endless

    with pytest.raises(RuleBroken, match="more than 2,000 requests"):
        Suite().test_check_without_problems()


def test_code_that_blocks_the_event_loop_is_named_by_any_rule():
    class Suite(ExampleConformance):
        provider = BlocksForEachRecord

    with pytest.raises(RuleBroken) as caught:
        Suite().test_hostile_text_is_read()
    line = inspect.getsourcelines(BlocksForEachRecord.to_incident)[1] + 1
    assert "A plugin never blocks the event loop" in str(caught.value)
    assert f'broken_others.py", line {line}, in BlocksForEachRecord.to_incident' in str(
        caught.value
    )


def test_code_of_tocsin_that_a_plugin_calls_is_not_blamed_on_the_plugin():
    file = Path(tocsin.__file__).with_name("slow.py")
    slow = compile("import time; time.sleep(0.3)", str(file), "exec")

    class Caller:
        async def read(self):
            exec(slow)

    asyncio.run(run_watched(Caller().read(), Caller))


def test_code_of_a_tracker_that_blocks_is_named_in_the_suite_of_its_channel():
    class SlowTracker(Tracker):
        async def find(self, key):
            time.sleep(0.3)  # noqa: ASYNC251

    with pytest.raises(LoopBlocked, match=r"SlowTracker\.find"):
        asyncio.run(run_watched(SlowTracker.find(None, "key"), Ticketing))


def test_no_collection_of_garbage_is_blamed_on_a_plugin():
    async def read():
        assert not gc.isenabled()

    asyncio.run(run_watched(read(), ExampleProvider))
    assert gc.isenabled()


def test_nothing_watches_the_event_loop_of_an_exempt_suite():
    class Suite(ExampleConformance):
        provider = BlocksForEachRecord
        test_the_event_loop_is_not_blocked = exempt("its library cannot be awaited")

    Suite().test_an_unknown_severity_becomes_medium()


class ListsItself(ExampleConformance.simulator):
    """Lists without `page` or `slice`, and renders without `show`."""

    async def list_cases(self, request):
        bounds = (request.query["changed_from"], request.query["changed_to"])
        cases = self.siem.changed(Window(*map(datetime.fromisoformat, bounds)))
        content = {"cases": [self.render(case) for case in cases], "next_page_token": None}
        return self.json(content)


@pytest.mark.parametrize(
    ("rule", "seen"),
    [
        (
            "test_a_partial_response_is_an_error",
            "nothing was raised, expected PluginFailure; the fault `partial` never took effect: "
            "list incidents with `page` or `slice`",
        ),
        (
            "test_every_page_is_read",
            "the page limit never took effect: list incidents with `page` or `slice`",
        ),
        (
            "test_a_malformed_record_is_rejected",
            "0 records rejected, expected one; the changed record never reached the provider: "
            "render it with `show`",
        ),
        (
            "test_severities_are_known_in_any_case",
            "the changed record never reached the provider: render it with `show`",
        ),
    ],
)
def test_what_a_simulator_bypasses_is_reported(rule, seen):
    class Suite(ExampleConformance):
        simulator = ListsItself

    with pytest.raises(RuleBroken) as caught:
        getattr(Suite(), rule)()
    assert str(caught.value).endswith(f"Seen: {seen}")


class SpeaksRpc(ExampleConformance.simulator):
    """Reports errors with status 200."""

    def refuse(self, refusal):
        error = {"code": refusal.status, "message": refusal.reason}
        return self.json({"cases": [], "next_page_token": None, "error": error})


@pytest.mark.parametrize(
    "rule",
    [
        "test_throttling_for_seconds_is_waited_out",
        "test_reading_recovers_from_server_errors",
        "test_a_missing_permission_is_refused",
    ],
)
def test_errors_in_the_vendors_own_shape_are_judged(rule):
    class Suite(ExampleConformance):
        simulator = SpeaksRpc

    with pytest.raises(RuleBroken, match=r"nothing was raised.*when `refuse` responds"):
        getattr(Suite(), rule)()


def test_a_declared_field_that_no_incident_has_is_reported():
    class Suite(ExampleConformance):
        fills = ("entities", "entitys")

    with pytest.raises(RuleBroken, match="`fills` has entitys, which no incident has"):
        Suite().test_declared_fields_are_filled()


def test_the_loss_of_entities_that_the_simulator_does_not_show_is_noticed():
    class Simulator(ExampleConformance.simulator):
        def render(self, case):
            return {**super().render(case), "entities": []}

    class Suite(ExampleConformance):
        simulator = Simulator

    for rule in (Suite.test_declared_fields_are_filled, Suite.test_entities_are_read):
        with pytest.raises(RuleBroken):
            rule(Suite())


class WritesTimesAsText(ExampleConformance.simulator):
    """Writes times as digits in text."""

    def render(self, case):
        at = str(case.created_at.timestamp())
        return {**super().render(case), "created_at": at}


def test_numbers_as_text_are_numbers():
    class Provider(ExampleProvider):
        def to_incident(self, record):
            if float(record["created_at"]) <= 0:
                return None
            return super().to_incident(record)

    class Suite(ExampleConformance):
        provider = Provider
        simulator = WritesTimesAsText

    with pytest.raises(RuleBroken, match="neither read nor rejected"):
        Suite().test_odd_numeric_times_are_handled()


@pytest.mark.parametrize("usual", [timedelta(days=5), timedelta(days=7)])
def test_a_large_default_of_the_overlap_breaks_no_rule(usual):
    class Provider(ExampleProvider):
        class Settings(ExampleProvider.Settings):
            overlap: Duration = Field(default=usual, le=timedelta(days=7), description="It.")

    rules = [
        "test_a_larger_overlap_brings_nothing_new",
        "test_the_first_read_covers_first_fetch",
    ]
    assert broken_rules(ExampleConformance, Provider, rules) == set()


def test_an_exempt_rule_is_skipped_with_the_reason():
    class Suite(ExampleConformance):
        test_entities_are_read = exempt("it has none")

    with pytest.raises(pytest.skip.Exception, match="it has none"):
        Suite().test_entities_are_read()


def test_what_a_simulator_does_not_show_is_skipped():
    class Simulator(ExampleConformance.simulator):
        def render(self, case):
            return {**super().render(case), "entities": []}

    class Suite(ExampleConformance):
        simulator = Simulator
        fills = ()

    with pytest.raises(pytest.skip.Exception, match="the entities of an incident"):
        Suite().test_entities_are_read()
