"""The channel in the service: its queue, its log of attempts, its templates, a mail server."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
import structlog
from sqlalchemy import select

import tocsin_templates
from tocsin import Event, EventType, Tools
from tocsin.delivery import DeliveryQueue, Renderer, Router, StoredAttemptLog
from tocsin.delivery.destinations.repository import Destination, destination_to_row
from tocsin.delivery.metrics.meters import DeliveryMetrics
from tocsin.delivery.queue.states import queue_topic
from tocsin.delivery.sending.worker import Worker
from tocsin.events import Notifiers, emit_events
from tocsin.identifiers import new_id
from tocsin.metrics import Metrics
from tocsin.net import open_sockets
from tocsin.registry import ManagedBy
from tocsin.store.tables import deliveries, destinations
from tocsin.testing import make_settings
from tocsin_plugins.email import Email
from workers import flush

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
RENDERER = Renderer([Path(path) for path in tocsin_templates.tocsin_template_paths()])
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
URL = "https://tocsin.example.com/incidents"


class Service:
    """A router and a worker that are driven by hand."""

    def __init__(self, server, database, clock, **settings) -> None:
        self.database, self.clock, self.server = database, clock, server
        usual = {"sender": "tocsin@example.com", "allow_networks": ["127.0.0.0/8"]}
        given = make_settings(Email, "email", **{**usual, **server.settings, **settings})
        tools = Tools(
            name="soc",
            http=None,
            clock=clock,
            log=structlog.get_logger(),
            sockets=open_sockets(allow_networks=given.allow_networks, ca_file=given.ca_file),
            attempts=StoredAttemptLog(database),
        )
        self.channel = Email(given, tools)
        self.notifiers, self.queue = Notifiers(), DeliveryQueue(database)
        metrics = DeliveryMetrics(Metrics(clock), database, clock)
        self.meter = metrics.meters.of("soc")
        self.router = Router(self.queue, database, clock, self.notifiers, metrics.routed)

    async def start(self) -> None:
        facts = {"plugin": "email", "managed_by": ManagedBy.FILE, "settings": {}}
        made = Destination(name="soc", created_at=NOW, updated_at=NOW, created_by="me", **facts)
        add = destinations.insert()
        await self.database.write(lambda c: c.execute(add, destination_to_row(made)))
        self.worker = Worker(
            made,
            self.channel,
            renderer=RENDERER,
            queue=self.queue,
            database=self.database,
            notifier=self.notifiers[queue_topic("soc")],
            vacancy_notifier=self.notifiers["vacancies"],
            meter=self.meter,
        )

    async def tell(self, *events: Event) -> None:
        await self.database.write(emit_events, events)
        await self.router.route_waiting()

    async def work(self) -> None:
        while await self.worker.claim():
            await flush(self.worker)

    async def rows(self):
        query = select(deliveries).order_by(deliveries.c.id)
        return await self.database.read(lambda c: list(c.execute(query).mappings()))

    @property
    def mails(self):
        return self.server.desk.mails


@pytest.fixture
async def start(server, database, clock):
    async def start(**settings) -> Service:
        service = Service(server, database, clock, **settings)
        await service.start()
        return service

    return start


def alert(number: int, title: str = "Many failed sign-ins") -> Event:
    told = {"title": title, "severity": "High", "status": "New", "provider": "cloud"}
    incident = {**told, "number": number, "external_id": f"x{number}", "entities": []}
    return Event(
        id=new_id("evt"),
        event_type=EventType.INCIDENT_ALERT,
        timestamp=NOW,
        data={**told, "incident_number": number, "url": f"{URL}/{number}"},
        subject=f"incident:{number}",
        context={"incident": incident},
    )


def completed(*numbers: int) -> Event:
    run = {"session_id": "s1", "schedule_id": "n", "schedule_name": "night", "title": "Calm"}
    counts = {"risk_score": 12.5, "entity_count": 0, "finding_count": 0}
    return Event(
        id=new_id("evt"),
        event_type=EventType.INVESTIGATION_COMPLETED,
        timestamp=NOW,
        data={**run, **counts, "url": "https://tocsin.example.com/investigations/s1"},
        subject="session:s1",
        related=("schedule:n", *(f"incident:{number}" for number in numbers)),
    )


async def test_who_is_put_off_gets_it_by_a_later_attempt_and_the_others_once(start):
    service = await start(to=["a@example.com", "b@example.com"])
    service.server.desk.answers["RCPT b@example.com"] = ["451 4.7.1 greylisted"]
    await service.tell(alert(7))
    await service.work()
    service.clock.advance(seconds=6)
    await service.work()
    [row] = await service.rows()
    assert (row["state"], row["attempts"]) == ("pending", 2)
    assert "1 of 2 recipients already have the email" in row["reason"]
    del service.server.desk.answers["RCPT b@example.com"]
    service.clock.advance(minutes=6)
    await service.work()
    [row] = await service.rows()
    assert row["state"] == "delivered"
    assert [mail.recipients for mail in service.mails] == [["a@example.com"], ["b@example.com"]]
    assert len({str(mail.message["Message-ID"]) for mail in service.mails}) == 1


async def test_an_investigation_answers_the_alert_of_its_incident(start):
    service = await start(to=["a@example.com"])
    await service.tell(alert(7), alert(8, "Another"))
    await service.work()
    await service.tell(completed(8, 7))
    await service.work()
    first = next(mail.message for mail in service.mails if "incident 8" in mail.message["Subject"])
    last = service.mails[-1].message
    assert str(last["In-Reply-To"]) == str(first["Message-ID"])
    assert str(last["Subject"]) == "Re: [High] Another (incident 8)"
    assert "Risk score: 12.5 of 100" in last.get_body(("plain",)).get_content()


async def test_a_digest_accounts_for_each_event(start):
    service = await start(to=["a@example.com"], digest="1h")
    await service.tell(*(alert(number) for number in (7, 8, 9)))
    await service.work()
    assert service.mails == []
    service.clock.advance(minutes=60)
    service.server.desk.hangs_up = {"dot"}
    await service.work()
    assert {row["state"] for row in await service.rows()} == {"pending"}
    service.server.desk.hangs_up = set()
    service.clock.advance(minutes=1)
    await service.work()
    rows = await service.rows()
    assert [(row["state"], row["attempts"]) for row in rows] == [("delivered", 2)] * 3
    lost, arrived = service.mails  # the first one is what the server said nothing of
    assert lost.message["Message-ID"] == arrived.message["Message-ID"]
    assert {row["remote_id"].split()[0] for row in rows} == {str(arrived.message["Message-ID"])}
    for number in (7, 8, 9):
        assert f"(incident {number})" in arrived.message.get_body(("html",)).get_content()
