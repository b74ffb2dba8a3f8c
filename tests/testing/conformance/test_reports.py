"""Reports of broken rules."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest
from broken import ExampleConformance
from tocsin_example.provider import ExampleProvider

from tocsin.testing.conformance import exempt
from tocsin.testing.conformance.rules import RuleBroken

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
    statement, reason = inspect.getdoc(ExampleConformance.test_hostile_text_is_read).split("\n\n")
    assert f"Rule: {statement}" in output
    assert f"Why: {reason}" in output
    assert "Seen: incident 1001 did not arrive; rejected: NUL in the title" in output
    assert "rules.py" not in output


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

    with pytest.raises(pytest.skip.Exception, match="the entities of an incident"):
        Suite().test_entities_are_read()
