"""The Defender provider against the simulator, with a manual clock."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from contextlib import aclosing
from datetime import timedelta
from functools import partial

import orjson
import pytest

from tocsin import (
    Alert,
    Broken,
    Capability,
    CredentialsRefused,
    Entity,
    EntityKind,
    Incident,
    IncidentStatus,
    Refused,
    Severity,
    TryLater,
    Window,
)
from tocsin.testing import Case, Fault, LogEvent, Siem, open_provider
from tocsin_connectors.siem.defender import Defender, tocsin_providers

from .simulator import (
    ALERTS,
    DETECTOR,
    INCIDENTS,
    SETTINGS,
    TENANT,
    DefenderAlertSimulator,
    DefenderSimulator,
)

ATTACKER = Entity(EntityKind.IP, "203.0.113.7")
HUNTING = "runHuntingQuery"
KEY = "tocsin:ses_01:1:7"


@pytest.fixture
async def simulator(clock):
    async with DefenderSimulator(Siem(clock)) as simulator:
        yield simulator


@pytest.fixture
def opened(simulator, clock):
    return partial(
        open_provider, Defender, clock=clock, url=simulator.url, authority=simulator.url, **SETTINGS
    )


@pytest.fixture
async def provider(opened):
    async with opened() as provider:
        yield provider


@pytest.fixture
def put(simulator, clock):
    def put(name="7", **parts):
        now = clock.now()
        given = {"title": "Password spray", "severity": Severity.HIGH, "entities": (ATTACKER,)}
        case = Case(id=name, number=int(name), created_at=now, changed_at=now, **given | parts)
        return simulator.siem.put(case)

    return put


class Feed:
    """Reads as the core does: what is stored is stored with its position."""

    def __init__(self, provider: Defender) -> None:
        self.provider = provider
        self.position: dict | None = None
        self.latest: dict[str, Incident] = {}

    async def read(self) -> None:
        now = self.provider.tools.clock.now()
        async with aclosing(self.provider.read("changed", self.position, now)) as pages:
            async for page in pages:
                self.position = orjson.loads(orjson.dumps(page.next_position))
                self.latest |= {incident.external_id: incident for incident in page.incidents}


@pytest.fixture
def feed(provider):
    return Feed(provider)


def lists(simulator) -> list[dict[str, str]]:
    return [dict(asked.query) for asked in simulator.requests if asked.path == INCIDENTS]


def test_plugin_hook_returns_the_provider():
    assert tocsin_providers() is Defender
    assert Defender.capabilities() == set(Capability) - {Capability.PUSH}


async def test_alerts_come_with_the_list(feed, simulator, put, clock):
    for number in range(120):
        put(str(number))
        clock.advance(seconds=1)
    clock.advance(minutes=2)
    await feed.read()
    assert len(feed.latest) == 120
    assert all(incident.entities == (ATTACKER,) for incident in feed.latest.values())
    assert {query["$expand"] for query in lists(simulator)} == {"alerts"}
    assert len(simulator.requests) == len(lists(simulator)) + 1  # and the sign-in


async def test_incidents_of_one_time_span_pages(feed, put, clock):
    for number in range(120):
        put(str(number))
    clock.advance(minutes=2)
    await feed.read()
    assert len(feed.latest) == 120


@pytest.mark.parametrize("digits", [6, 3, 0])
async def test_lower_filter_precision_loses_nothing(feed, simulator, put, clock, digits):
    simulator.digits = digits
    clock.advance(microseconds=123_456)
    for number in range(120):
        put(str(number))
        clock.advance(microseconds=1_001)
    clock.advance(minutes=2)
    await feed.read()
    assert len(feed.latest) == 120


async def test_too_many_incidents_of_one_time_are_reported_as_lost(feed, put, clock):
    for number in range(600):
        put(str(number))
    clock.advance(minutes=2)
    with pytest.raises(Broken, match="more than 500 incidents were updated at"):
        await feed.read()


async def test_unordered_list_is_read_in_smaller_windows(feed, simulator, put, clock):
    simulator.unordered = True
    for number in range(120):
        put(str(number))
        clock.advance(seconds=1)
    clock.advance(minutes=2)
    for _ in range(2):
        with pytest.raises(Broken, match="not sorted by lastUpdateDateTime"):
            await feed.read()
    await feed.read()
    assert len(feed.latest) == 120


async def test_check_says_whether_the_list_is_sorted(feed, simulator, put, clock):
    said = []
    for unordered in (False, False, True):
        said.append((await feed.provider.check()).detail.rpartition("; ")[2])
        for number in range(4):
            put(str(number))
            clock.advance(seconds=1)
        clock.advance(minutes=2)
        simulator.unordered = unordered
    said.append((await feed.provider.check()).detail.rpartition("; ")[2])
    assert said[0].startswith("too few incidents")
    assert said[1] == "Graph sorted 4 incidents by update time"
    assert said[3].startswith("Graph does not sort incidents by update time")


async def test_incidents_with_too_many_alerts_are_listed_without_them(feed, simulator, put, clock):
    put("7")
    put("8")
    simulator.heavy = {"7"}
    clock.advance(minutes=2)
    with pytest.raises(Broken):
        await feed.read()
    await feed.read()
    assert {name: incident.entities for name, incident in feed.latest.items()} == {
        "7": (ATTACKER,),
        "8": (ATTACKER,),
    }
    assert ["$expand" in query for query in lists(simulator)].count(False) == 1
    clock.advance(minutes=1)
    await feed.read()  # what is heavy lies in the overlap
    for _ in range(2):
        clock.advance(minutes=30)
        await feed.read()
    assert "$expand" in lists(simulator)[-1]


async def test_new_enum_values_are_kept(feed, simulator, put, clock):
    put("7")
    simulator.awaiting = {"7"}
    clock.advance(minutes=2)
    await feed.read()
    found = feed.latest["7"]
    assert (found.raw_status, found.status) == ("awaitingAction", IncidentStatus.ACTIVE)


async def test_alerts_added_without_update_are_seen_within_the_overlap(feed, simulator, put, clock):
    put("7", entities_at=clock.now() + timedelta(minutes=5))
    clock.advance(minutes=2)
    await feed.read()
    assert feed.latest["7"].entities == ()
    clock.advance(minutes=4)
    await feed.read()
    assert feed.latest["7"].entities == (ATTACKER,)


async def test_merged_incident_keeps_its_id(provider, put):
    put("7", merged_into="8", status=IncidentStatus.CLOSED)
    put("8")
    found = await provider.incident("7")
    assert (found.external_id, found.merged_into) == ("7", "8")


# what investigations ask


async def hunted(provider, entity=ATTACKER, limit=9):
    now = provider.tools.clock.now()
    async with aclosing(
        provider.events(entity, Window(now - timedelta(hours=1), now), limit)
    ) as found:
        return [event async for event in found]


@pytest.fixture
def log(simulator, clock):
    def log(minutes, *entities):
        at = clock.now() - timedelta(minutes=minutes)
        entities = entities or (ATTACKER,)
        simulator.siem.log(
            LogEvent(id="1", occurred_at=at, entities=entities, text="ConnectionSuccess")
        )

    return log


async def test_hunting_query_finds_logged_events(provider, log):
    log(10)
    [event] = await hunted(provider)
    assert event.summary == "network: ConnectionSuccess, curl.exe, 203.0.113.7"
    assert event.external_id == (await hunted(provider))[0].external_id


async def test_names_in_any_script_are_searched(provider, simulator, log):
    user = Entity(EntityKind.USER, 'jürgen "鐘"@example.com')
    log(10, user)
    assert len(await hunted(provider, user)) == 1


async def test_missing_tables_are_left_out_of_hunting(provider, simulator, log):
    log(10)
    simulator.absent_tables = {"DeviceEvents", "IdentityLogonEvents"}
    assert len(await hunted(provider)) == 1
    simulator.requests.clear()
    assert len(await hunted(provider)) == 1
    assert len(simulator.requests) == 1


async def test_throttled_hunting_query_has_a_retry_time(provider, simulator, log):
    log(10)
    simulator.retry_after = timedelta(minutes=9)
    simulator.fail(Fault.THROTTLED, where=HUNTING)
    with pytest.raises(TryLater) as caught:
        await hunted(provider)
    assert (caught.value.after, caught.value.throttled) == (timedelta(minutes=9), True)


async def test_reading_continues_while_hunting_is_throttled(provider, feed, simulator, put, clock):
    put("7")
    clock.advance(minutes=2)
    simulator.fail(Fault.THROTTLED, where=HUNTING, times=9)
    with pytest.raises(TryLater):
        await hunted(provider)
    await feed.read()
    assert set(feed.latest) == {"7"}


# what the app may do


@pytest.mark.parametrize(
    ("where", "missing"),
    [(INCIDENTS, "SecurityIncident.Read.All"), (HUNTING, "ThreatHunting.Read.All")],
)
async def test_check_reports_missing_read_permissions(provider, simulator, where, missing):
    simulator.fail(Fault.FORBIDDEN, where=where)
    assert (await provider.check()).problems == (f"the app lacks the permission {missing}",)


def readable(simulator, *roles: str):
    """Have the simulator give out tokens that name these permissions."""
    begin = simulator.begin_session

    def begin_session() -> str:
        claims = urlsafe_b64encode(orjson.dumps({"roles": roles})).decode().rstrip("=")
        session = begin()
        token = f"{session}.{claims}.x"
        simulator._sessions[token] = simulator._sessions[session]
        return token

    simulator.begin_session = begin_session


@pytest.mark.parametrize("writing", ["write_back", "close_from_tickets"])
@pytest.mark.parametrize(
    ("roles", "problems"),
    [
        (("SecurityIncident.ReadWrite.All", "ThreatHunting.Read.All"), ()),
        (
            ("SecurityIncident.Read.All", "ThreatHunting.Read.All"),
            ("the app lacks the permission SecurityIncident.ReadWrite.All",),
        ),
        ((), ()),  # what cannot be known is no problem
    ],
)
async def test_check_reports_missing_write_permissions(opened, simulator, roles, problems, writing):
    readable(simulator, *roles)
    async with opened(**{writing: True}) as provider:
        assert (await provider.check()).problems == problems
    async with opened() as provider:
        assert (await provider.check()).problems == ()


async def test_check_reports_wrong_credentials_as_such(opened):
    async with opened(client_secret="another") as provider:
        with pytest.raises(CredentialsRefused, match="AADSTS7000215"):
            await provider.check()


# what is written


async def test_comment_goes_to_the_merge_target(provider, simulator, put):
    put("7", merged_into="8", status=IncidentStatus.CLOSED)
    put("8", merged_into="9", status=IncidentStatus.CLOSED)
    put("9")
    for _ in range(2):
        await provider.comment("7", "Nothing was found.", KEY)
    [comment] = simulator.siem.comments("9")
    assert comment == f"Nothing was found.\n\n[tocsin {KEY}]"
    assert simulator.siem.comments("7") == simulator.siem.comments("8") == []


async def test_cyclic_merge_is_refused(provider, put):
    put("7", merged_into="8")
    put("8", merged_into="7")
    with pytest.raises(Refused, match="merged more than"):
        await provider.comment("7", "Nothing was found.", KEY)


@pytest.mark.parametrize("status", IncidentStatus)
async def test_status_is_set_once(provider, simulator, put, status):
    put("7", status=IncidentStatus.NEW)
    for _ in range(2):
        await provider.set_status("7", status)
    assert (await provider.incident("7")).status is status
    assert len(simulator.written) == (status is not IncidentStatus.NEW)


async def test_status_of_missing_incident_is_refused(provider):
    with pytest.raises(Refused):
        await provider.set_status("7", IncidentStatus.ACTIVE)


async def test_invalid_incident_response_is_broken(provider, put):
    put("8", malformed=True)
    with pytest.raises(Broken, match="not return a valid record"):
        await provider.incident("8")
    assert await provider.incident("9") is None


@pytest.fixture
async def alerts(clock):
    async with DefenderAlertSimulator(Siem(clock)) as simulator:
        yield simulator


def open_alerts(simulator, clock, wanted, **settings):
    url = simulator.url
    given = {"url": url, "authority": url, "alerts": wanted, **SETTINGS, **settings}
    return open_provider(Defender, clock=clock, **given)


def put_alert(simulator, clock, **parts):
    now = clock.now()
    given = {"title": "Brute force", "severity": Severity.HIGH, "entities": (ATTACKER,)}
    case = Case(id="da7", number=7, created_at=now, changed_at=now, **given | parts)
    return simulator.siem.put(case)


async def test_alert_becomes_incident(alerts, clock):
    case = put_alert(alerts, clock, description="Many failed sign-ins.")
    clock.advance(minutes=2)
    async with open_alerts(alerts, clock, "without-incident") as provider:
        found = await provider.incident("alert:da7")
    assert found == Incident(
        external_id="alert:da7",
        title="Brute force",
        description="Many failed sign-ins.",
        severity=Severity.HIGH,
        raw_severity="high",
        raw_status="new",
        occurred_at=case.created_at,
        changed_at=case.changed_at,
        source_url=f"https://security.microsoft.com/alerts/7?tid={TENANT}",
        techniques=("T1110.003",),
        tactics=("TA0006",),
        entities=(ATTACKER,),
        alerts=(
            Alert(
                external_id="da7",
                title="Brute force",
                severity=Severity.HIGH,
                occurred_at=case.created_at,
                rule=DETECTOR,
            ),
        ),
    )


@pytest.mark.parametrize(
    ("wanted", "found"), [("none", []), ("without-incident", []), ("all", ["alert:da7"])]
)
async def test_alert_in_an_incident_is_no_second_one_unless_wanted(alerts, clock, wanted, found):
    put_alert(alerts, clock)
    alerts.incidents["da7"] = "28282"
    clock.advance(minutes=2)
    read: list[str] = []
    async with open_alerts(alerts, clock, wanted) as provider:
        for stream in provider.streams():
            async with aclosing(provider.read(stream, None, clock.now())) as pages:
                read += [one.external_id async for page in pages for one in page.incidents]
    assert read == found


async def test_alert_that_was_put_into_an_incident_later_is_merged(alerts, clock):
    put_alert(alerts, clock)
    async with open_alerts(alerts, clock, "without-incident") as provider:
        alone = await provider.incident("alert:da7")
        alerts.incidents["da7"] = "28282"
        merged = await provider.incident("alert:da7")
    assert (alone.merged_into, alone.status) == (None, IncidentStatus.NEW)
    assert (merged.merged_into, merged.status) == ("28282", IncidentStatus.CLOSED)


async def test_status_of_an_alert_is_set_once(alerts, clock):
    put_alert(alerts, clock)
    async with open_alerts(alerts, clock, "all", write_back=True) as provider:
        for _ in range(2):
            await provider.set_status("alert:da7", IncidentStatus.ACTIVE)
        with pytest.raises(Refused, match="alert da8 does not exist"):
            await provider.set_status("alert:da8", IncidentStatus.ACTIVE)
    assert alerts.written == [{"status": "inProgress"}]


async def test_missing_permission_for_alerts_is_named(alerts, clock):
    alerts.fail(Fault.FORBIDDEN, where=ALERTS)
    async with open_alerts(alerts, clock, "all") as provider:
        (problem,) = (await provider.check()).problems
    assert problem == "the app lacks the permission SecurityAlert.Read.All"
