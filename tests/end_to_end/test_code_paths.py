"""The files that one incident and one request pass through, as CONTRIBUTING.md tours them."""

from __future__ import annotations

import asyncio
import re
from datetime import timedelta

import pytest
from tests.connectors.elastic.simulator import API_KEY, ElasticSimulator

from api_server import open_api
from code_path import ROOT, CodePath
from faults.receiver import Receiver
from faults.station import open_station
from incident_rows import add_incidents
from tocsin import Entity, EntityKind, Severity
from tocsin.clock import SystemClock
from tocsin.events import Notifiers
from tocsin.incidents import ProviderSync, SyncContext
from tocsin.store import open_database
from tocsin.testing import Case, Siem, open_provider
from tocsin_connectors.siem.elastic import Elastic

CORE = "core/tocsin"
FOUNDATIONS = re.compile(
    rf"{CORE}/(?:store|model|metrics|testing|sandbox|.*/metrics)[/.]"
    rf"|{CORE}/(?:clock|gc|identifiers|json_codec|logs|loops|fields|plugin_health|plugin_results|redaction|servers|time_limits|tracing)\.py"
    rf"|{CORE}/validation\.py|.*\.j2"
)
"""What every path uses, and what only tests use: no stations of the tour of an incident."""
OTHER_WORK = re.compile(
    rf"{CORE}/incidents/(?:sync/pauses|sync/refresh|sync/status|storage/refreshes|storage/removed|backfills/.*)\.py|{CORE}/delivery/sending/worker_pool\.py"
    rf"|{CORE}/delivery/(?:queue/overview|routing/suppression|statuses/.*)\.py"
    rf"|{CORE}/(?:shapes|incidents/drift)/.*\.py|{CORE}/hookspecs/provider\.py"
)
"""What a round does besides reading and routing: nothing for this incident."""
MAX_FILES_OF_AN_INCIDENT = 35
MAX_FILES_OF_A_REQUEST = 15

on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


def list_tour(heading: str) -> list[str]:
    """Return the files that a section of CONTRIBUTING.md names in its table, in order."""
    section = (ROOT / "CONTRIBUTING.md").read_text().split(f"### {heading}\n")[1].split("\n#")[0]
    return re.findall(r"^\| \d+ \| `([^`]+)`", section, flags=re.MULTILINE)


@on_sqlite
async def test_an_incident_passes_through_the_files_of_the_tour(migrated_url, tmp_path):
    clock, path = SystemClock(), CodePath()
    with path.watching():
        database = open_database(migrated_url)
        async with (
            Receiver() as receiver,
            ElasticSimulator(Siem(clock)) as simulator,
            open_station(tmp_path, database, clock) as station,
            open_provider(
                Elastic,
                clock=clock,
                url=simulator.url,
                kibana_url=simulator.url,
                api_key=API_KEY,
                incidents=["alerts"],
                settle_delay="0s",
            ) as provider,
        ):
            context = SyncContext(database, clock, Notifiers(), "https://tocsin.example")
            sync = ProviderSync(provider, context)
            await station.add("soc", f"http://127.0.0.1:{receiver.port}/hook/soc")

            async def bring(number: int) -> None:
                moment = clock.now() - timedelta(seconds=5)
                simulator.siem.put(
                    Case(
                        id=f"alert-{number}",
                        number=number,
                        title="Port scan",
                        severity=Severity.HIGH,
                        created_at=moment,
                        changed_at=moment,
                        entities=(Entity(EntityKind.IP, "203.0.113.7"),),
                    )
                )
                async with asyncio.timeout(20):
                    while len(await station.attempts()) < number:
                        await sync.read_all()
                        station.wake()
                        await asyncio.sleep(0.1)

            await bring(1)
            with path.recording():
                await bring(2)
        await database.close()
    stations = [
        file
        for file in path.files
        if not FOUNDATIONS.match(file) and not OTHER_WORK.fullmatch(file)
    ]
    tour = list_tour("One incident")
    assert sorted(stations) == sorted(tour)
    assert len(tour) <= MAX_FILES_OF_AN_INCIDENT


@on_sqlite
async def test_an_authenticated_read_passes_through_the_files_of_the_tour(migrated_url):
    path = CodePath()
    with path.watching():
        database = open_database(migrated_url)
        async with open_api(database, SystemClock()) as api:
            await database.write(add_incidents, 1)
            headers = await api.reader()
            for _ in range(2):  # the second proves which row the verified key belongs to
                (await api.client.get("/api/v1/incidents/1", headers=headers)).raise_for_status()
            with path.recording():
                await api.client.get("/api/v1/incidents/1", headers=headers)
        await database.close()
    tour = list_tour("One request")
    assert sorted(path.files) == sorted(tour)
    assert len(tour) <= MAX_FILES_OF_A_REQUEST
