"""Tools of plugins under test, and the simulator for manual tests."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.request

import pytest
from pydantic import ValidationError

from tocsin import Enricher, Investigator, Misconfigured, Sighting
from tocsin.observables import Environment, EnvironmentSettings
from tocsin.testing import make_settings, make_tools, open_enricher
from tocsin_plugins.enrichers import HistoryEnricher

SCRIPT = """
import signal
from aiohttp import web
from tocsin import Window
from tocsin.testing import Simulator, run_simulator
from datetime import datetime


class Plain(Simulator):
    open_paths = ("/list",)

    def routes(self):
        return [web.get("/list", self.list)]

    def render(self, case):
        return {"id": case.id}

    async def list(self, request):
        bounds = (datetime.fromisoformat(f"{year}-01-01T00:00:00Z") for year in (2000, 2200))
        return self.json([self.show(case) for case in self.page(Window(*bounds), limit=100).cases])


# whoever runs this in the background has Ctrl+C ignored
signal.signal(signal.SIGINT, signal.default_int_handler)
run_simulator(Plain, port=0)
"""


class Known:
    async def sightings(self, entities):
        return [Sighting(entity=entity, incident_count=7) for entity in entities]


async def test_an_enricher_is_opened_with_what_it_is_to_know():
    environment = Environment(EnvironmentSettings(internal_domains=("example.com",)))
    options = {"environment": environment, "knowledge": Known(), "timeout": "5s"}
    async with open_enricher(HistoryEnricher, name="history", **options) as enricher:
        assert enricher.tools.environment is environment
        assert (await enricher.tools.knowledge.sightings([object()]))[0].incident_count == 7
        assert enricher.settings.timeout.total_seconds() == 5


def test_settings_of_every_kind_are_checked():
    for kind in (Enricher, Investigator):
        assert make_settings(kind).plugin == "test"
        with pytest.raises(ValidationError):
            make_settings(kind, unheard_of=1)


async def test_without_a_client_nothing_is_reached():
    http = make_tools().http
    for asking in (http.vet_url("https://a.example"), http.request("GET", "https://a.example")):
        with pytest.raises(Misconfigured, match="no network"):
            await asking


@pytest.mark.full
def test_a_simulator_is_run_by_hand(tmp_path):
    command = [sys.executable, "-c", SCRIPT]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            url = process.stdout.readline().split()[3].rstrip(";")
            with urllib.request.urlopen(f"{url}/list", timeout=10) as answer:
                assert answer.read().count(b'"id"') > 10
        finally:
            os.kill(process.pid, signal.SIGINT)
        assert process.wait(10) == 0
