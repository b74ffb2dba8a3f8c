"""Simulated SIEM: known truth, and injected faults."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import aiohttp
import pytest
from aiohttp import web

from tocsin import Severity, Window
from tocsin.testing import Case, Fault, Scenario, Siem, Simulator

OPENS = {"Authorization": "Bearer session-1"}


class Plain(Simulator):
    """Lists at /list; a page is asked for with `token`."""

    most_per_page = 4

    def routes(self):
        return [web.get("/list", self.list)]

    def render(self, case):
        return {"id": case.id, "title": case.title}

    async def list(self, request):
        now = self.siem.now()
        window = Window(now - timedelta(days=30), now + timedelta(days=30))
        page = self.page(window, limit=100, token=request.query.get("token"))
        return self.json(
            {"cases": [self.show(case) for case in page.cases], "next": page.next_token}
        )


class Backwards(Plain):
    newest_first = True


@pytest.fixture
def siem(clock) -> Siem:
    return Siem(clock)


@pytest.fixture(params=[Plain, Backwards])
async def simulator(request, siem):
    async with request.param(siem) as simulator:
        simulator.begin_session()
        yield simulator


@pytest.fixture
async def session():
    timeout = aiohttp.ClientTimeout(total=0.5)
    async with aiohttp.ClientSession(timeout=timeout, headers=OPENS) as session:
        yield session


@pytest.fixture
def put(siem, clock):
    def put(name, title="first", **parts) -> Case:
        times = {"created_at": clock.now(), "changed_at": clock.now()}
        given = {"id": name, "number": 1, "title": title, "severity": Severity.LOW}
        return siem.put(Case(**given | times | parts))

    return put


def everything(siem) -> list[str]:
    now = siem.now()
    window = Window(now - timedelta(days=30), now + timedelta(days=30))
    return [case.title for case in siem.changed(window)]


async def listed(session, simulator) -> list[str]:
    """Return the ids on all pages."""
    found, token = [], None
    while True:
        query = {"token": token} if token else {}
        async with session.get(f"{simulator.url}/list", params=query) as response:
            page = await response.json()
        found += [case["id"] for case in page["cases"]]
        if (token := page["next"]) is None:
            return found


def test_a_siem_lists_an_incident_once_as_it_last_changed(siem, put, clock):
    put("a", "first")
    clock.advance(minutes=1)
    put("a", "second")
    assert everything(siem) == ["second"]


def test_a_version_is_not_shown_before_it_is_visible_but_is_true(siem, put, clock):
    put("a", "first")
    clock.advance(minutes=1)
    put("a", "second", visible_at=clock.now() + timedelta(minutes=5))
    assert everything(siem) == ["first"]
    assert siem.truth()["a"].title == "second"
    clock.advance(minutes=5)
    assert everything(siem) == ["second"]


def test_a_siem_tells_what_was_created_when_whatever_changed_since(siem, put, clock):
    created = put("a", "first")
    clock.advance(hours=1)
    put("a", "second", created_at=created.created_at)
    put("b", visible_at=clock.now() + timedelta(minutes=5))
    window = Window(created.created_at, clock.now())
    assert [case.title for case in siem.created(window)] == ["second"]
    later = Window(clock.now(), clock.now() + timedelta(hours=1))
    assert siem.created(later) == []
    clock.advance(minutes=5)
    assert [case.id for case in siem.created(later)] == ["b"]


def test_a_siem_tells_every_version_of_a_time(siem, put, clock):
    first = put("a", "first")
    clock.advance(minutes=1)
    put("a", "second", visible_at=clock.now() + timedelta(minutes=5))
    window = Window(first.changed_at, clock.now() + timedelta(minutes=1))
    assert [case.title for case in siem.versions(window)] == ["first"]
    clock.advance(minutes=5)
    assert [case.title for case in siem.versions(window)] == ["first", "second"]
    assert siem.versions(Window(clock.now(), clock.now() + timedelta(hours=1))) == []


def test_a_siem_stamps_by_its_own_clock_and_never_backwards(siem, put, clock):
    siem.skew = timedelta(minutes=4)
    ahead = put("a")
    assert ahead.changed_at == clock.now() + timedelta(minutes=4)
    siem.skew = -timedelta(minutes=4)
    assert put("a").changed_at > ahead.changed_at


async def test_every_page_leads_to_the_next(simulator, session, put):
    for number in range(11):
        put(f"case-{number}")
    assert sorted(await listed(session, simulator)) == sorted(f"case-{n}" for n in range(11))


async def test_what_changes_between_two_pages_hides_nothing_else(simulator, session, put, clock):
    for number in range(12):
        put(f"case-{number}")
        clock.advance(seconds=1)
    changes = iter(range(12))

    def change_one() -> None:
        clock.advance(seconds=1)
        put(f"case-{next(changes)}", "changed")

    simulator.before_each = change_one
    untouched = {f"case-{number}" for number in range(4, 12)}
    assert untouched <= set(await listed(session, simulator))


async def test_without_a_session_nothing_is_shown(simulator, session, clock):
    clock.advance(minutes=61)
    async with session.get(f"{simulator.url}/list") as response:
        assert response.status == 401


async def test_a_page_token_expires(simulator, session, put, clock):
    for number in range(5):
        put(f"case-{number}")
    async with session.get(f"{simulator.url}/list") as response:
        token = (await response.json())["next"]
    clock.advance(minutes=10)
    async with session.get(f"{simulator.url}/list", params={"token": token}) as response:
        assert response.status == 400


async def test_a_poisoned_incident_breaks_its_page_until_it_is_healed(
    simulator, session, put, siem
):
    put("a")
    siem.poisoned.add("a")
    async with session.get(f"{simulator.url}/list") as response:
        assert response.status == 500
    siem.poisoned.clear()
    assert await listed(session, simulator) == ["a"]


async def test_a_malformed_incident_is_shown_as_nonsense(simulator, session, put):
    put("a", malformed=True)
    async with session.get(f"{simulator.url}/list") as response:
        assert (await response.json())["cases"] == [
            {"id": {"unexpected": "a"}, "title": {"unexpected": "first"}}
        ]


STATUSES = {
    Fault.THROTTLED: 429,
    Fault.THROTTLED_UNTIL: 429,
    Fault.UNAVAILABLE: 503,
    Fault.BAD_GATEWAY: 502,
    Fault.ERROR: 500,
    Fault.UNAUTHORIZED: 401,
    Fault.FORBIDDEN: 403,
    Fault.PARTIAL: 206,
    Fault.LOGIN_PAGE: 200,
    Fault.EMPTY: 200,
    Fault.UNEXPECTED: 200,
    Fault.TRUNCATED: 200,
    Fault.REVOKED: 401,
}


@pytest.mark.parametrize(("fault", "status"), STATUSES.items(), ids=str)
async def test_a_fault_is_met_once_where_it_was_put(simulator, session, put, fault, status):
    put("a")
    simulator.fail(fault, where="/list")
    async with session.get(f"{simulator.url}/list") as response:
        assert response.status == status
        assert "Date" in response.headers
    assert simulator.faults_left == []
    simulator.begin_session()
    headers = {"Authorization": f"Bearer session-{2 if fault is Fault.REVOKED else 1}"}
    async with session.get(f"{simulator.url}/list", headers=headers) as response:
        assert (await response.json())["cases"] == [{"id": "a", "title": "first"}]


@pytest.mark.parametrize("fault", [Fault.CUT, Fault.SLOW, Fault.RESTARTED])
async def test_a_connection_can_break(simulator, session, put, fault):
    put("a")
    simulator.fail(fault, times=2)
    with pytest.raises((aiohttp.ClientError, TimeoutError)):
        await listed(session, simulator)


async def test_a_fault_waits_for_the_requests_that_it_is_meant_for(simulator, session, put):
    put("a")
    simulator.fail(Fault.ERROR, where="/elsewhere")
    assert await listed(session, simulator) == ["a"]
    assert len(simulator.faults_left) == 1


async def test_a_repeated_page_leads_to_itself(simulator, session, put):
    for number in range(9):
        put(f"case-{number}")
    async with session.get(f"{simulator.url}/list") as response:
        token = (await response.json())["next"]
    simulator.fail(Fault.REPEATED_PAGE)
    async with session.get(f"{simulator.url}/list", params={"token": token}) as response:
        assert (await response.json())["next"] == token


async def test_more_requests_than_are_allowed_are_throttled(simulator, session, clock):
    simulator.most_per_minute = 2
    statuses = []
    for _ in range(3):
        async with session.get(f"{simulator.url}/list") as response:
            statuses.append(response.status)
    clock.advance(seconds=61)
    async with session.get(f"{simulator.url}/list") as response:
        statuses.append(response.status)
    assert statuses == [200, 200, 429, 200]


async def test_a_simulator_that_hung_up_is_back_at_the_same_address(simulator, session, put):
    put("a")
    await simulator.hang_up()
    with pytest.raises(aiohttp.ClientError):
        await listed(session, simulator)
    await simulator.listen()
    simulator.begin_session()
    headers = {"Authorization": "Bearer session-2"}
    async with session.get(f"{simulator.url}/list", headers=headers) as response:
        assert response.status == 200


def test_the_same_seed_makes_the_same_day(clock):
    one, other = (Scenario(clock.now(), seed=3) for _ in range(2))
    assert (one.cases, one.mishaps) == (other.cases, other.mishaps)
    assert Scenario(clock.now(), seed=4).cases != one.cases


@pytest.mark.parametrize("changes", [1, 500, 3_000])
def test_a_day_has_as_many_changes_as_it_is_told_in_order(clock, changes):
    day = Scenario(clock.now(), changes=changes)
    moments = [case.changed_at for case in day.cases]
    assert len(moments) == changes
    assert moments == sorted(moments)
    assert day.start <= moments[0] <= moments[-1] <= day.end


def test_a_day_has_all_that_is_hard(clock):
    day = Scenario(clock.now())
    moments = Counter(case.changed_at for case in day.cases)
    ids = Counter(case.id for case in day.cases)
    kinds = {
        "bursts": max(moments.values()) > 10,
        "updates": max(ids.values()) > 1,
        "late": any(case.visible_at for case in day.cases),
        "late entities": any(case.entities_at and case.entities for case in day.cases),
        "merges": any(case.merged_into for case in day.cases),
        "malformed": any(case.malformed for case in day.cases),
        "unknown severities": any(not isinstance(case.severity, Severity) for case in day.cases),
        "poison": any(mishap.poisons for mishap in day.mishaps),
        "skew": any(mishap.skew for mishap in day.mishaps),
    }
    assert [kind for kind, there in kinds.items() if not there] == []
    assert {mishap.fault for mishap in day.mishaps} >= set(Fault)


async def test_a_day_unfolds_as_time_passes(simulator, siem, clock):
    day = Scenario(clock.now(), changes=50)
    day.play(simulator)
    assert siem.truth() == {}
    clock.advance(hours=12)
    day.play(simulator)
    known = len(siem.truth())
    clock.advance(hours=12)
    day.play(simulator)
    assert 0 < known < len(siem.truth())
    assert len(siem.truth()) + len(siem.unreadable()) == len({case.id for case in day.cases})
