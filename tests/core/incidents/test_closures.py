"""Closures at the SIEM after people closed a ticket."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from incident_rows import NOW, add_incidents
from tocsin import Broken, Misconfigured, Provider, Refused, TryLater
from tocsin.accounting import Period, report_period, trace_incident
from tocsin.incidents import TicketClosures, load_closure
from tocsin.metrics import Metrics
from tocsin.model import IncidentDisposition, IncidentStatus, RemoteResolution
from tocsin.registry.parser import find_unsupported_write_back
from tocsin.testing import make_tools
from tocsin_connectors.siem.opensearch import OpenSearch

URL = "https://tocsin.example.com"


class Siem(Provider):
    """Sets statuses, or raises `failure`."""

    failure: Exception | None = None

    def __init__(self, clock, **settings) -> None:
        super().__init__(Siem.Settings(plugin="siem", **settings), make_tools(None, "edge", clock))
        self.closed: list[str] = []

    async def check(self):
        raise NotImplementedError

    read = check

    async def set_status(self, external_id, status):
        assert status is IncidentStatus.CLOSED
        if self.failure is not None:
            raise self.failure
        self.closed.append(external_id)


@pytest.fixture
def siem(clock) -> Siem:
    return Siem(clock, close_from_tickets=True)


@pytest.fixture
async def closures(database, clock, siem) -> TicketClosures:
    await database.write(add_incidents, 1, provider="edge", external_id="e-1")
    return TicketClosures(database, clock, {"edge": siem}, URL, Metrics(clock))


def decided(disposition=IncidentDisposition.FALSE_POSITIVE, *, is_closed=True) -> RemoteResolution:
    return RemoteResolution(
        incident_number=1,
        destination="soc",
        disposition=disposition,
        is_closed=is_closed,
        reason="SEC-7: Done",
    )


async def test_a_closed_ticket_closes_its_incident_once(database, clock, siem, closures):
    await database.write(closures.apply, decided(), NOW)
    assert await closures.close_next(siem)
    assert not await closures.close_next(siem)
    assert siem.closed == ["e-1"]
    found = await database.read(trace_incident, 1)
    shown = found["siem_closure"]
    assert (shown["state"], shown["destination"], shown["ticket"]) == (
        *("written", "soc", "SEC-7: Done"),
    )
    now = clock.now() + timedelta(seconds=1)
    proof = await database.read(report_period, Period(NOW - timedelta(days=1), now), now)
    assert proof["siem_closures"] == {"pending": 0, "written": 1, "failed": 0}


async def test_a_ticket_without_a_disposition_closes_too(database, siem, closures):
    await database.write(closures.apply, decided(None), NOW)
    assert await closures.close_next(siem)


async def test_a_reopened_ticket_cancels_what_is_not_written(database, siem, closures):
    await database.write(closures.apply, decided(), NOW)
    await database.write(closures.apply, decided(None, is_closed=False), NOW)
    assert not await closures.close_next(siem)
    assert await database.read(load_closure, 1) is None


@pytest.mark.parametrize("status", ["Closed", "New"])
async def test_only_open_incidents_of_enabled_providers_are_closed(
    database, clock, closures, status
):
    off = Siem(clock)
    closures = TicketClosures(database, clock, {"edge": off}, URL, Metrics(clock))
    await database.write(add_incidents, 1, provider="edge", external_id="e-2", status=status)
    await database.write(closures.apply, decided(), NOW)
    assert not await closures.close_next(off)
    assert closures.make_loops([off]) == {}
    assert await database.read(load_closure, 1) is None


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (Refused("it was deleted"), ("failed", None)),
        (Broken("500"), ("pending", timedelta(minutes=1))),
        (TryLater("busy", after=timedelta(minutes=7)), ("pending", timedelta(minutes=7))),
        (Misconfigured("no closing reason"), ("pending", timedelta(hours=1))),
    ],
)
async def test_failures_are_recorded_and_repeated(database, siem, closures, failure, expected):
    clock, (state, delay) = siem.tools.clock, expected
    siem.failure = failure
    await database.write(closures.apply, decided(), NOW)
    assert not await closures.close_next(siem)
    found = await database.read(load_closure, 1)
    assert (found["state"], found["reason"]) == (state, str(failure))
    siem.failure = None
    if delay is None:
        clock.advance(days=3)
        assert not await closures.close_next(siem)
    else:
        clock.advance(seconds=delay.total_seconds() - 1)
        assert not await closures.close_next(siem)
        clock.advance(seconds=1)
        assert await closures.close_next(siem)


async def test_a_closure_that_always_fails_is_given_up(database, clock, siem, closures):
    siem.failure = Broken("500")
    await database.write(closures.apply, decided(), NOW)
    for _ in range(6):
        await closures.close_next(siem)
        clock.advance(days=1)
    found = await database.read(load_closure, 1)
    assert (found["state"], found["failures"]) == ("failed", 6)


async def test_a_killed_node_repeats_its_closure(database, clock, siem, closures, monkeypatch):
    class Killed(BaseException):
        """The end of the process."""

    async def set_status(*_):
        raise Killed

    await database.write(closures.apply, decided(), NOW)
    monkeypatch.setattr(siem, "set_status", set_status)
    with pytest.raises(Killed):
        await closures.close_next(siem)
    monkeypatch.undo()
    assert not await closures.close_next(siem), "its lease has not ended"
    clock.advance(minutes=5)
    assert await closures.close_next(siem)


def test_a_provider_that_cannot_close_is_refused(clock):
    settings = Siem(clock, close_from_tickets=True).settings
    assert list(find_unsupported_write_back(Siem, settings)) == []
    [(name, found, _)] = find_unsupported_write_back(OpenSearch, settings)
    assert (name, found) == ("close_from_tickets", "'siem' cannot close incidents")


async def test_attempts_are_counted_by_outcome(database, clock, siem):
    await database.write(add_incidents, 1, provider="edge", external_id="e-1")
    metrics = Metrics(clock)
    closures = TicketClosures(database, clock, {"edge": siem}, URL, metrics)
    closures.make_loops([siem])

    async def count() -> list[float]:
        clock.advance(minutes=10)
        text = (await metrics.expose()).decode()
        found = re.findall(r'tocsin_siem_closures_total\{outcome="(\w+)",.* ([0-9.]+)', text)
        return [float(dict(found)[outcome]) for outcome in ("written", "later", "failed")]

    assert await count() == [0, 0, 0]
    await database.write(closures.apply, decided(), NOW)
    siem.failure = TryLater("busy")
    await closures.close_next(siem)
    assert await count() == [0, 1, 0]
    siem.failure = None
    await closures.close_next(siem)
    assert await count() == [1, 1, 0]
    await database.write(closures.apply, decided(None, is_closed=False), NOW)
    await database.write(closures.apply, decided(), NOW)
    siem.failure = Refused("it was deleted")
    await closures.close_next(siem)
    assert await count() == [1, 1, 1]
