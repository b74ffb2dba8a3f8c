"""Tests against a real CrowdSec: 1.4.6, or the one in `.ci/components`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest

from crowdsec_server import MACHINE, PASSWORD, LocalApi, decision, detection, sshd_log
from tocsin import (
    CredentialsRefused,
    Entity,
    EntityKind,
    Incident,
    IncidentStatus,
    Severity,
    SiemEvent,
    TryLater,
    Window,
)
from tocsin.clock import SystemClock
from tocsin.testing import ManualClock, open_provider
from tocsin_connectors.siem.crowdsec import CrowdSec


class WrongClock(SystemClock):
    """The machine's clock, and so much more."""

    def __init__(self, ahead: timedelta) -> None:
        self._ahead = ahead

    def now(self) -> datetime:
        return super().now() + self._ahead


class Feed:
    """Reads as the core does, and keeps what it got."""

    def __init__(self, provider: CrowdSec) -> None:
        self.provider = provider
        self.position: dict[str, Any] | None = None
        self.incidents: list[Incident] = []

    async def read(self) -> None:
        until = self.provider.tools.clock.now()
        async with aclosing(self.provider.read("changed", self.position, until)) as pages:
            async for page in pages:
                assert not page.rejected
                self.position = orjson.loads(orjson.dumps(page.next_position))
                self.incidents += page.incidents

    async def read_until(self, count: int) -> list[Incident]:
        """Read until there are so many, and then once more, and return all that came.

        What was created in this second is read in the next one, by the server's clock.
        """
        async with asyncio.timeout(20):
            while len(self.incidents) < count:
                await self._read_on()
            await self._read_on()
        return self.incidents

    async def _read_on(self) -> None:
        """Read, as soon as there is another second to read."""
        before = self.position
        while self.position == before:
            await self.read()
            await asyncio.sleep(0.02)


@pytest.fixture
def settings(local_api: LocalApi) -> dict[str, Any]:
    return {
        "url": local_api.url,
        "machine_id": MACHINE,
        "password": PASSWORD,
        "settle_delay": "0s",
    }


@pytest.fixture
async def provider(settings: dict[str, Any]) -> AsyncIterator[CrowdSec]:
    async with open_provider(CrowdSec, clock=SystemClock(), **settings) as provider:
        yield provider


@pytest.fixture
def feed(provider: CrowdSec) -> Feed:
    return Feed(provider)


async def test_real_detection_becomes_one_incident(local_api, feed):
    await local_api.detect(sshd_log("203.0.113.7", ["root", "admin", "oracle"] * 4))
    (incident,) = await feed.read_until(1)
    assert incident.title == "crowdsecurity/ssh-bf"
    assert (incident.severity, incident.severity_assumed) == (Severity.MEDIUM, True)
    assert (incident.status, incident.external_number) == (IncidentStatus.NEW, "1")
    assert incident.techniques == ("T1110",)
    assert "Ip 203.0.113.7 performed 'crowdsecurity/ssh-bf'" in incident.description
    assert "Decided: ban" in incident.description
    assert {
        Entity(EntityKind.IP, "203.0.113.7"),
        Entity(EntityKind.USER, "root"),
        Entity(EntityKind.USER, "admin"),
        Entity(EntityKind.HOST, "bastion"),
    } <= set(incident.entities)


@pytest.mark.full
async def test_replayed_log_is_detected_today(local_api, feed):
    then = datetime.now(UTC) - timedelta(days=30)
    await local_api.detect(sshd_log("203.0.113.7", ["root"] * 12, at=then))
    (incident,) = await feed.read_until(1)
    assert abs(incident.occurred_at - then) < timedelta(minutes=1)


async def test_no_alerts_give_no_incidents(provider, feed):
    assert (await provider.check()).problems == ()
    await feed.read()
    assert feed.incidents == []


@pytest.mark.full
async def test_more_alerts_of_one_time_than_a_page_arrive_once(local_api, feed):
    await local_api.send(*(detection(number) for number in range(300)))
    incidents = await feed.read_until(300)
    assert {incident.title for incident in incidents} == {f"test/detection-{n}" for n in range(300)}
    assert len(incidents) == 300


@pytest.mark.full
async def test_alerts_without_decision_count_but_blocklist_updates_do_not(local_api, feed):
    community = {"scope": "crowdsecurity/community-blocklist", "value": ""}
    lists = {"scope": "lists:firehol", "value": ""}
    await local_api.send(
        detection(1, source=community, decisions=[decision(origin="CAPI")]),
        detection(2, source=lists, decisions=[decision(origin="lists")]),
        detection(3, decisions=None),
    )
    (incident,) = await feed.read_until(1)
    assert incident.title == "test/detection-3"


@pytest.mark.full
async def test_manual_decision_is_informational(local_api, feed):
    await local_api.cscli("decisions", "add", "--ip", "198.51.100.9", "--duration", "1h")
    (incident,) = await feed.read_until(1)
    assert incident.severity is Severity.INFORMATIONAL
    assert incident.entities == (Entity(EntityKind.IP, "198.51.100.9"),)


async def test_incident_closes_with_its_last_decision(local_api, provider, feed):
    await local_api.send(detection(decisions=[decision(), decision(type="captcha")]))
    (incident,) = await feed.read_until(1)
    again = await provider.incident(incident.external_id)
    await local_api.cscli("decisions", "delete", "--id", "1")
    one_left = await provider.incident(incident.external_id)
    await local_api.cscli("decisions", "delete", "--id", "2")
    ended = await provider.incident(incident.external_id)
    assert again == one_left == incident
    assert ended.status is IncidentStatus.CLOSED
    assert feed.incidents == [incident]
    assert await feed.read_until(2) == [incident, ended]


@pytest.mark.full
async def test_deleted_alert_is_no_incident(local_api, provider, feed):
    await local_api.send(detection())
    (incident,) = await feed.read_until(1)
    await local_api.cscli("alerts", "delete", "--all")
    assert await provider.incident(incident.external_id) is None
    assert await provider.incident("no number@2026-11-20T12:00:00Z") is None


@pytest.mark.full
async def test_restarted_ids_are_new_incidents(local_api, provider, feed):
    await local_api.send(detection(1))
    (old,) = await feed.read_until(1)
    await local_api.kill()
    await local_api.begin_anew()
    await local_api.start()
    await local_api.send(detection(2))
    old, new = await feed.read_until(2)
    assert old.external_number == new.external_number == "1"
    assert old.external_id != new.external_id
    assert await provider.incident(old.external_id) is None
    assert await provider.incident(new.external_id) == new


async def test_wrong_password_is_reported(settings):
    wrong = settings | {"password": "wrong"}
    async with open_provider(CrowdSec, clock=SystemClock(), **wrong) as provider:
        with pytest.raises(CredentialsRefused, match=r"machine_id or password: .*incorrect"):
            await provider.check()


async def test_unvalidated_machine_is_reported(local_api, settings):
    other = {"machine_id": "other", "password": PASSWORD}
    await local_api.register(**other)
    async with open_provider(CrowdSec, clock=SystemClock(), **settings | other) as provider:
        with pytest.raises(CredentialsRefused, match="machine other not validated"):
            await provider.check()


async def test_restart_of_local_api_loses_nothing(local_api, feed):
    await local_api.send(detection(1))
    await feed.read_until(1)
    await local_api.kill()
    with pytest.raises(TryLater):
        await feed.provider.check()
    await local_api.start()  # and it knows none of its tokens any more
    await local_api.send(detection(2))
    assert [incident.title for incident in await feed.read_until(2)] == [
        "test/detection-1",
        "test/detection-2",
    ]


async def test_session_is_renewed_before_expiry_despite_clock_skew(local_api, settings):
    clock = ManualClock(datetime(2001, 1, 1, tzinfo=UTC))
    async with open_provider(CrowdSec, clock=clock, **settings) as provider:
        for _ in range(2):
            assert (await provider.check()).problems == ()
        assert local_api.log.read_text().count("/v1/watchers/login") == 1
        clock.advance(minutes=59, seconds=30)
        assert (await provider.check()).problems == ()
        assert local_api.log.read_text().count("/v1/watchers/login") == 2


@pytest.mark.full
@pytest.mark.parametrize("hours", [-5, 5])
async def test_wrong_clock_loses_nothing(local_api, settings, hours):
    clock = WrongClock(timedelta(hours=hours))
    await local_api.send(*(detection(number) for number in range(12)))
    async with open_provider(CrowdSec, clock=clock, **settings) as provider:
        await provider.check()
        feed = Feed(provider)
        incidents = await feed.read_until(12)
    assert len({incident.external_id for incident in incidents}) == len(incidents) == 12


@pytest.mark.full
async def test_backfill_reads_its_window(local_api, provider, feed):
    await local_api.send(*(detection(number) for number in range(12)))
    incidents = await feed.read_until(12)
    assert incidents[0].changed_at
    hour = timedelta(hours=1)
    created = [incident.changed_at for incident in incidents]
    window = Window(min(created) - hour, max(created) + timedelta(seconds=1))
    async with aclosing(provider.backfill("changed", None, window)) as pages:
        found = [incident async for page in pages for incident in page.incidents]
    assert sorted(item.external_id for item in found) == sorted(
        incident.external_id for incident in incidents
    )
    earlier = Window(window.start, min(created))
    async with aclosing(provider.backfill("changed", None, earlier)) as pages:
        assert [incident async for page in pages for incident in page.incidents] == []


def logged(at: datetime, log_type: str) -> dict[str, Any]:
    """Return a line as a sensor sends it with a detection."""
    return {"meta": [{"key": "log_type", "value": log_type}], "timestamp": at.isoformat()}


async def events_of(provider, entity, window, limit=100) -> list[SiemEvent]:
    async with aclosing(provider.events(entity, window, limit)) as events:
        return [event async for event in events]


@pytest.mark.full
async def test_events_of_an_address_are_found_by_source_and_range(local_api, provider, feed):
    await local_api.detect(sshd_log("203.0.113.7", ["root", "admin", "oracle"] * 4))
    now = datetime.now(UTC)
    ranged = {"scope": "Range", "value": "198.51.100.0/24", "ip": "198.51.100.1"}
    covers = decision(scope="Range", value="198.51.100.0/24")
    community = {"scope": "crowdsecurity/community-blocklist", "value": ""}
    await local_api.send(
        detection(2, source=ranged, decisions=[covers]),
        detection(3, source=community, decisions=[decision(origin="CAPI")]),
        detection(4, source={"scope": "Username", "value": "ann"}, events=[logged(now, "sign-in")]),
        detection(5, decisions=None),
    )
    incidents = await feed.read_until(4)
    window = Window(now - timedelta(hours=1), now + timedelta(hours=1))
    address, bastion = Entity(EntityKind.IP, "203.0.113.7"), Entity(EntityKind.HOST, "bastion")
    found = await events_of(provider, address, window)
    [ban] = [value for value in found if "decision" in str(value.external_id)]
    assert ban.summary == "ban of 203.0.113.7 for 4h by crowdsec: crowdsecurity/ssh-bf"
    assert (ban.fields["lasts"], ban.fields["active"]) == ("4h", True)
    lines = [item for item in found if item is not ban]
    assert len({line.external_id for line in lines}) == len(lines) >= 6
    assert {line.fields["scenario"] for line in lines} == {"crowdsecurity/ssh-bf"}
    assert {line.summary for line in lines} == {
        f"ssh failed-auth for {user} from 203.0.113.7 on bastion"
        for user in ("root", "admin", "oracle")
    }
    assert {line.fields["alert"] for line in lines} < {
        incident.external_id for incident in incidents
    }
    assert (address, "connected-to", bastion) in {
        (relation.source, relation.type, relation.target) for relation in lines[0].relations
    }
    assert len(await events_of(provider, address, window, 3)) == 3
    inside = Entity(EntityKind.IP, "198.51.100.77")
    [covered] = await events_of(provider, inside, window)
    assert covered.summary == "ban of 198.51.100.0/24 for 4h by crowdsec: test/detection"
    assert inside in covered.entities
    [by_name] = await events_of(provider, Entity(EntityKind.USER, "ann"), window)
    assert "sign-in" in by_name.summary
    for nobody in ("203.0.113.8", "203.0.113.7' or 1=1", "203.0.113.0/24"):
        assert await events_of(provider, Entity(EntityKind.IP, nobody), window) == []
    assert await events_of(provider, Entity(EntityKind.HOST, "bastion"), window) == []


@pytest.mark.full
async def test_latest_events_of_the_window_are_found(local_api, provider):
    now = datetime.now(UTC)
    begun = [now - timedelta(minutes=number) for number in range(120, 0, -1)]
    alerts = [
        detection(n, start_at=at.isoformat(), events=[logged(at, f"line-{n}")])
        for n, at in enumerate(begun)
    ]
    for start in range(0, len(alerts), 40):
        await local_api.send(*alerts[start : start + 40])
    address = Entity(EntityKind.IP, "203.0.113.7")
    window = Window(begun[10], begun[110])
    found = await events_of(provider, address, window, 200)
    assert {event.fields["log_type"] for event in found} == {f"line-{n}" for n in range(10, 110)}
    assert len(await events_of(provider, address, Window(now, now + timedelta(days=1)))) == 0
