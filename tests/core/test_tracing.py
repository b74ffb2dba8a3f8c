"""Traces from the read of a SIEM to the attempt at a receiver, as a collector decodes them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from sqlalchemy import select

from end_to_end.service import SECRET, Receiver, Sensor, until
from full_run import postgresql_in_full
from node_runs import running
from ports import free_port
from tocsin import tracing
from tocsin.cli import check
from tocsin.cli.check_report import CheckReport
from tocsin.settings import Settings
from tocsin.store.tables import events

TRACE, CALLER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@dataclass(frozen=True)
class SeenSpan:
    name: str
    trace: str
    id: str
    parent: str
    attributes: dict
    notes: list[dict]
    error: str


class Collector:
    """OTLP/HTTP receiver that decodes what it gets with the protocol's own classes."""

    def __init__(self) -> None:
        self.port = free_port()
        self.spans: list[SeenSpan] = []
        self.resource: dict = {}
        self.content = b""

    async def receive(self, request: web.Request) -> web.Response:
        self.content += (body := await request.read())
        for group in ExportTraceServiceRequest.FromString(body).resource_spans:
            self.resource = read_attributes(group.resource)
            self.spans += [read_span(span) for of in group.scope_spans for span in of.spans]
        return web.Response()

    def find(self, name: str) -> list[SeenSpan]:
        return [span for span in self.spans if span.name == name]


def read_attributes(owner) -> dict:
    values = ((one.key, one.value) for one in owner.attributes)
    return {key: getattr(value, value.WhichOneof("value")) for key, value in values}


def read_span(span) -> SeenSpan:
    ids = (span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex())
    notes = [read_attributes(event) for event in span.events]
    return SeenSpan(span.name, *ids, read_attributes(span), notes, span.status.message)


@pytest.fixture
async def collector(monkeypatch) -> AsyncIterator[Collector]:
    collector = Collector()
    app = web.Application()
    app.router.add_post("/v1/traces", collector.receive)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", collector.port).start()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{collector.port}")
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
    yield collector
    await runner.cleanup()


class TracedReceiver(Receiver):
    """Receiver that keeps the headers of each attempt."""

    def __init__(self) -> None:
        super().__init__()
        self.parents: list[str | None] = []

    async def _receive(self, request: web.Request) -> web.Response:
        self.parents.append(request.headers.get("traceparent"))
        return await super()._receive(request)


@pytest.fixture
async def receiver() -> AsyncIterator[TracedReceiver]:
    async with TracedReceiver() as receiver:
        yield receiver


@pytest.fixture
def sensor(tmp_path: Path, receiver) -> Sensor:
    (tmp_path / "secret").write_text(SECRET)
    (tmp_path / "plugins.toml").write_text(
        f"""
        enabled = ["suricata", "webhook"]
        [providers.edge]
        plugin = "suricata"
        path = "{tmp_path}/eve.json"
        poll_interval = "20ms"
        """
        + receiver.destination
    )
    (sensor := Sensor(tmp_path / "eve.json")).path.touch()
    return sensor


@pytest.fixture
async def settings(tmp_path: Path, migrated_url, sensor) -> Settings:
    return Settings(
        data_dir=tmp_path / "data",
        database_url=migrated_url.render_as_string(hide_password=False),
        plugins_file=tmp_path / "plugins.toml",
        encryption_key="A" * 43 + "=",
        port=free_port(),
        tracing=True,
    )


async def test_one_trace_goes_from_the_read_to_the_attempt_after_a_restart(
    settings, sensor, receiver, collector
):
    receiver.statuses = [503] * 3
    sensor.write(1)
    async with running(settings):
        await until(lambda: receiver.parents)
    receiver.statuses = []
    async with running(settings) as node:
        await until(lambda: receiver.received)
        stored = select(events.c.context)
        context = await node.database.read(lambda c: c.execute(stored).scalar_one())
    [read] = [
        span for span in collector.find("provider.read") if span.trace in context["traceparent"]
    ]
    [store] = [span for span in collector.find("incidents.store") if span.parent == read.id]
    assert store.attributes == {
        "provider": "edge",
        "records": 1,
        "new": 1,
        "changed": 0,
        "rejected": 0,
        "events": 1,
    }
    [[event_id]] = [[note["event_id"] for note in store.notes]]
    assert context["traceparent"][:-3] == f"00-{read.trace}-{store.id}"
    [route] = collector.find("event.route")
    attempts = collector.find("delivery.attempt")
    assert {span.parent for span in (route, *attempts)} == {store.id}
    assert route.attributes == {"event_id": event_id, "destinations": 1}
    assert [span.attributes["outcome"] for span in attempts[:1] + attempts[-1:]] == [
        "later",
        "delivered",
    ]
    parents = [parent.rpartition("-")[0] for parent in receiver.parents]
    assert parents == [f"00-{read.trace}-{span.id}" for span in attempts]
    assert collector.resource["service.name"] == "tocsin"
    assert collector.resource["deployment.environment.name"] == "test"
    private = (SECRET, "198.51.100.7", "192.0.2.10", "EXAMPLE Exploit")
    assert not [text for text in private if text.encode() in collector.content]


@postgresql_in_full
async def test_requests_join_the_trace_of_their_caller(settings, collector, receiver):
    caller = {"traceparent": f"00-{TRACE}-{CALLER}-01"}
    secret = "4711-secret-of-a-caller"
    async with (
        running(settings),
        aiohttp.ClientSession(f"http://127.0.0.1:{settings.port}") as http,
    ):
        for path in ("/healthz", f"/api/v1/incidents/{secret}", f"/{secret}?q={secret}"):
            async with http.get(path, headers=caller):
                pass
        async with http.request("PROPFIND", "/", headers={"traceparent": "x" * 5000}):
            pass
    known, unknown, strange = (span for span in collector.spans if "http.route" in span.attributes)
    assert (known.trace, known.parent) == (TRACE, CALLER)
    assert known.name == "GET /api/v1/incidents/{number}"
    assert known.attributes["http.response.status_code"] == 401
    assert (unknown.name, unknown.trace) == ("GET unknown", TRACE)
    assert strange.name.startswith("_OTHER ")
    assert not strange.parent
    assert secret.encode() not in collector.content.lower()


@pytest.mark.full
async def test_without_a_collector_the_service_works_and_ends(
    settings, sensor, receiver, monkeypatch
):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setattr(tracing, "_FLUSH_SECONDS", 0.1)
    sensor.write(1)
    async with running(settings):
        await until(lambda: receiver.received)
    assert not tracing.is_on()


@postgresql_in_full
async def test_nothing_is_traced_by_default(settings, sensor, receiver, collector):
    sensor.write(1)
    async with running(settings.model_copy(update={"tracing": False})) as node:
        await until(lambda: receiver.received)
        stored = select(events.c.context)
        context = await node.database.read(lambda c: c.execute(stored).scalar_one())
    assert "traceparent" not in context
    assert receiver.parents == [None]
    assert not collector.spans


@pytest.mark.full
def test_opentelemetry_is_imported_only_while_tracing_is_on():
    code = "import sys, tocsin.node, tocsin.cli; sys.exit('opentelemetry' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


async def test_errors_are_traced_without_their_text(collector):
    async with tracing.open_tracing("1", "node:8080"):
        with pytest.raises(ValueError, match="s3cret"), tracing.span("x", {"name": "n" * 5000}):
            raise ValueError("s3cret")
    [span] = collector.spans
    assert (span.error, len(span.attributes["name"])) == ("ValueError", 200)
    assert b"s3cret" not in collector.content
    assert collector.resource["service.instance.id"] == "node:8080"


async def test_missing_packages_are_named(monkeypatch, capsys):
    monkeypatch.setattr(tracing, "find_spec", lambda _: None)
    async with tracing.open_tracing("1", "node:8080"):
        assert not tracing.is_on()
    assert tracing.find_missing() == "install it with `pip install 'tocsin[otel]'`"


def test_check_reports_missing_packages(monkeypatch, capsys, tmp_path):
    def passes(settings: Settings) -> bool:
        report = CheckReport(tmp_path / "plugins.toml")
        check._check_tracing(settings, report)
        return report.passed

    assert passes(Settings(tracing=True))
    monkeypatch.setattr(tracing, "find_spec", lambda _: None)
    assert passes(Settings())
    assert not passes(Settings(tracing=True))
    assert "OpenTelemetry is not installed; install it with" in capsys.readouterr().err
