"""An incident that was rejected from a stored push is retried after a fix of the mapping."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import timedelta

import pytest
import structlog
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import func, select, text

from api_server import PUSH_TOKEN, PUSHED, URL, problem
from console import Person, text_of
from memory_intake import MemoryIntake
from tocsin import Incident, Received, Severity, Tools
from tocsin.accounting import Period, report_period
from tocsin.events import Notifiers
from tocsin.fields import SettingsOrigin
from tocsin.hookspecs import Capability
from tocsin.incidents import ProviderFacts, PushInbox, SyncContext, SyncMeters, load_quarantined_row
from tocsin.store.tables import coverage, events, incidents, quarantine
from tocsin_connectors.siem.push import Push

on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
PATH = "/api/admin/quarantine"
JSON = {"Content-Type": "application/json", "Authorization": f"Bearer {PUSH_TOKEN}"}
MAPPING = """{"incidents": [{% for case in body.cases %}
  {"external_id": {{ ID }}, "title": {{ case.title }}, "severity": "High"}
  {% if not loop.last %},{% endif %}{% endfor %}],
  "missing": {{ ["left out " ~ body.more] if body.more else [] }}}"""
BROKEN, HALF, FIXED = "case.no", "case.no or case.id", "case.no or case.id or case.name"
CASES = [{"no": "a", "title": "A"}, {"id": "b", "title": "B"}, {"name": "c", "title": "C"}]


async def make_push(tmp_path, clock, name: str, kind=Push, **values) -> Push:
    """Return a provider whose mapping names incidents by these members of a case."""
    file = tmp_path / "mapping.json.j2"
    file.write_text(MAPPING.replace("ID", name))
    (tmp_path / "token").write_text(PUSH_TOKEN)
    token = {"file": str(tmp_path / "token")}
    written = {"plugin": "push", "token": token, "mapping_file": str(file), **values}
    settings = kind.Settings.model_validate(written, context=SettingsOrigin(tmp_path).context())
    tools = Tools(name=PUSHED, http=None, clock=clock, log=structlog.get_logger(), public_url=URL)
    provider = kind(settings, tools)
    await provider.start()
    return provider


@pytest.fixture
def use(api, clock, tmp_path):
    async def use(name: str, kind=Push, **values) -> Push:
        """Let the API have this mapping, as a reload does."""
        provider = await make_push(tmp_path, clock, name, kind, **values)
        api.services.inbox.replace([PUSHED], [provider])
        return provider

    return use


async def push(api, cases: list[dict], status: int = 200, **rest) -> dict:
    body = {"cases": cases, **rest}
    response = await api.client.post(f"/api/push/{PUSHED}", json=body, headers=JSON)
    assert response.status == status, await response.text()
    return await response.json()


async def waiting(admin) -> dict[str, int]:
    """Return the IDs, by location, of the records that were not retried."""
    records = (await admin.read(PATH))["records"]
    return {each["location"]: each["id"] for each in records if each["retried_at"] is None}


async def stored(api) -> list[str]:
    query = select(incidents.c.external_id).order_by(incidents.c.external_id)
    return await api.services.database.read(lambda c: list(c.scalars(query)))


async def account(api, clock) -> tuple[int, ...]:
    """Return the numbers of the ledger, and what is not accounted for."""
    names = ("records", "new", "changed", "rejected")
    query = select(*(func.sum(coverage.c[name]) for name in names))
    row = await api.services.database.read(lambda c: c.execute(query).one())
    period = Period(clock.now() - timedelta(hours=1), clock.now() + timedelta(hours=1))
    report = await api.services.database.read(report_period, period, clock.now())
    return (*map(int, row), len([one for one in report["unaccounted"] if "push" in one["kind"]]))


async def test_a_rejected_incident_of_a_large_push_is_retried_by_itself(api, admin, clock, use):
    await use(BROKEN, records="cases")
    padding = [{"no": f"n-{number}", "title": "x" * 500} for number in range(40)]
    counts = await push(api, [*padding, CASES[1]], source="gate")
    assert (counts["new"], counts["rejected"]) == (40, 1)
    [(location, record)] = (await waiting(admin)).items()
    shown = await admin.read(f"{PATH}/{record}")
    assert (location, shown["retry_obstacle"]) == ("incident 41 of 41", None)
    assert json.loads(shown["request"]) == {"cases": [CASES[1]], "source": "gate"}
    assert json.loads(shown["content"])["external_id"] is None
    refusal = await problem(await admin.send("POST", f"{PATH}/{record}/retry"), 409)
    assert "still cannot be parsed: incident 1 of 1: external_id" in refusal["detail"]
    assert await account(api, clock) == (41, 40, 0, 1, 0)
    await use(HALF, records="cases")
    answer = await admin.ask("POST", f"{PATH}/{record}/retry")
    assert (answer["received"], answer["new"], answer["changed"]) == (1, 1, 0)
    assert (await stored(api))[0] == "b"
    assert (await waiting(admin), (await admin.read(PATH))["total"]) == ({}, 1)
    assert await account(api, clock) == (42, 41, 0, 1, 0)
    alerts = await api.services.database.read(lambda c: c.scalar(select(func.count(events.c.id))))
    assert alerts == 41
    [entry] = await admin.audited(action="quarantine.retry")
    assert entry["target"] == f"quarantine:{record}"


async def test_rejected_incidents_of_one_request_are_retried_together(api, admin, clock, use):
    await use(BROKEN)
    assert (await push(api, CASES))["rejected"] == 2
    await use(HALF)
    records = await waiting(admin)
    assert list(records) == ["incident 3 of 3", "incident 2 of 3"]
    refusal = await problem(
        await admin.send("POST", f"{PATH}/{records['incident 3 of 3']}/retry"), 409
    )
    assert "incident 3 of 3: external_id" in refusal["detail"]
    answer = await admin.ask("POST", f"{PATH}/{records['incident 2 of 3']}/retry")
    assert (answer["received"], answer["new"], answer["rejected"]) == (1, 1, 0)
    assert list(await waiting(admin)) == ["incident 3 of 3"]
    assert await account(api, clock) == (4, 2, 0, 2, 0)
    await push(api, [{"no": "d", "title": "D"}, {"name": "e"}, {"name": "f"}, {"no": "g"}])
    await use(FIXED)
    records = await waiting(admin)
    answer = await admin.ask("POST", f"{PATH}/{records['incident 2 of 4']}/retry")
    assert (answer["received"], answer["new"]) == (2, 2)
    assert answer["records"] == [records["incident 2 of 4"], records["incident 3 of 4"]]
    [entry, _] = await admin.audited(action="quarantine.retry")
    assert entry["details"]["records"] == answer["records"]
    last = records["incident 3 of 3"]
    assert await waiting(admin) == {"incident 3 of 3": last}
    await admin.ask("POST", f"{PATH}/{last}/retry")
    assert await stored(api) == ["a", "b", "c", "d", "e", "f", "g"]
    assert await account(api, clock) == (11, 7, 0, 4, 0)


async def test_a_rejected_incident_of_an_accepted_push_is_retried(api, admin, clock, use):
    provider, received_at = await use(BROKEN), clock.now()
    api.services.inbox.intake = MemoryIntake()
    assert (await push(api, CASES[:2], status=202))["rejected"] == 1
    clock.advance(minutes=30)
    reader = api.services.inbox._make_reader(provider)
    assert await reader._acquire()
    await reader.load()
    await reader.step()
    [record] = (await waiting(admin)).values()
    await use(HALF)
    answer = await admin.ask("POST", f"{PATH}/{record}/retry")
    assert (answer["received"], answer["new"]) == (1, 1)
    query = select(incidents.c.external_id, incidents.c.occurred_at)
    found = await api.services.database.read(lambda c: dict(map(tuple, c.execute(query))))
    assert found == {"a": received_at, "b": received_at}
    assert await account(api, clock) == (3, 2, 0, 1, 0)


async def test_the_request_of_several_rejected_incidents_is_stored_once(api, admin, use):
    await use(BROKEN)
    await push(api, [CASES[0], *(CASES[1] for _ in range(100))])
    query = select(func.sum(func.length(quarantine.c.request)), func.count())
    size, count = await api.services.database.read(lambda c: c.execute(query).one())
    requests = {(await admin.read(f"{PATH}/{id_}"))["request"] for id_ in (1, 100)}
    assert (count, len(requests), size) == (100, 1, len(requests.pop()))
    await use(HALF)
    answer = await admin.ask("POST", f"{PATH}/100/retry")
    assert (answer["records"], await waiting(admin)) == ([*range(1, 101)], {})


@on_sqlite
async def test_a_request_that_does_not_fit_says_why_there_is_no_retry(api, admin, use):
    await use(BROKEN)
    await push(api, [{"no": "a", "title": "x" * 16_384}, CASES[1]])
    [record] = (await waiting(admin)).values()
    refusal = await problem(await admin.send("POST", f"{PATH}/{record}/retry"), 409)
    assert "larger than the 16 KiB" in refusal["detail"]
    shown = await admin.read(f"{PATH}/{record}")
    assert (shown["retry_obstacle"], shown["request"]) == (refusal["detail"], None)


@on_sqlite
async def test_what_the_sender_left_out_is_not_retried_nor_listed_twice(api, admin, use):
    await use(BROKEN)
    await push(api, CASES[:2], more=7)
    records = await waiting(admin)
    await use(HALF)
    await problem(await admin.send("POST", f"{PATH}/{records['not sent']}/retry"), 409)
    await admin.ask("POST", f"{PATH}/{records['incident 2 of 2']}/retry")
    assert await waiting(admin) == {"not sent": records["not sent"]}


async def test_incidents_of_one_request_are_retried_once_at_the_same_time(api, admin, clock, use):
    for number in range(3):
        await use(BROKEN)
        cases = [{"no": f"a-{number}"}, *({"id": f"b-{number}-{n}"} for n in range(4))]
        await push(api, cases)
        await use(HALF)
        paths = [f"{PATH}/{record}/retry" for record in (await waiting(admin)).values()]
        answers = await asyncio.gather(*(admin.send("POST", path) for path in paths))
        assert sorted(answer.status for answer in answers) == [200, 409, 409, 409]
    assert await waiting(admin) == {}
    assert await account(api, clock) == (27, 15, 0, 12, 0)


class Faulty(Push):
    """A plugin that makes no valid incident of some cases."""

    def unpack(self, body, received_at) -> Iterator[Received]:
        for case in json.loads(body)["cases"]:
            severity = Severity.HIGH if case["title"] != "B" else "High"
            moment = {"occurred_at": received_at, "severity": severity}
            one = Incident(external_id=case["title"], title=case["title"], **moment)
            yield Received(incidents=(one,), records=1)


@on_sqlite
async def test_an_invalid_incident_of_a_plugin_is_retried_after_an_update(api, admin, clock, use):
    await use(BROKEN, Faulty)
    assert (await push(api, CASES[:2]))["new"] == 1
    [record] = (await waiting(admin)).values()
    refusal = await problem(await admin.send("POST", f"{PATH}/{record}/retry"), 409)
    assert "severity must be of type Severity" in refusal["detail"]
    assert list((await waiting(admin)).values()) == [record]
    await use("case.title")
    await admin.ask("POST", f"{PATH}/{record}/retry")
    assert await stored(api) == ["A", "B"]
    assert await account(api, clock) == (3, 2, 0, 1, 0)


@on_sqlite
async def test_several_records_are_retried_at_once(api, admin, use):
    await use(BROKEN)
    await push(api, CASES)
    await push(api, [{"no": "d", "title": "D"}, {"title": "nameless"}])
    await use(FIXED)
    ids = [1, 2, 3, 4, 2]
    answer = await admin.ask("POST", f"{PATH}-retries", json={"records": ids})
    assert [(each["id"], each["outcome"]) for each in answer["results"]] == [
        (1, "retried"),
        (2, "retried"),
        (3, "refused"),
        (4, "not-found"),
    ]
    assert "still cannot be parsed" in answer["results"][2]["detail"]
    assert await stored(api) == ["a", "b", "c", "d"]
    again = await admin.ask("POST", f"{PATH}-retries", json={"records": [1, 2]})
    assert {each["detail"] for each in again["results"]} == {"The record was already retried."}
    assert len(await admin.audited(action="quarantine.retry")) == 1
    for wrong in ([], [0], list(range(1, 52))):
        await problem(await admin.send("POST", f"{PATH}-retries", json={"records": wrong}), 422)


async def count_stored(api, clock) -> float:
    """Return how many incidents the metrics count now."""
    clock.advance(minutes=1)
    exposed = (await api.services.metrics.expose()).decode()
    samples = (each for one in text_string_to_metric_families(exposed) for each in one.samples)
    return sum(each.value for each in samples if each.name == "tocsin_incidents_stored_total")


@on_sqlite
async def test_a_retry_that_is_rolled_back_is_not_counted(api, admin, clock, tmp_path):
    provider = await make_push(tmp_path, clock, BROKEN)
    database, notifiers = api.services.database, Notifiers()
    context = SyncContext(database, clock, notifiers, URL)
    meters = SyncMeters(api.services.metrics)
    api.services.inbox = PushInbox([provider], context, meters.of)
    await push(api, CASES[:2])
    provider = await make_push(tmp_path, clock, HALF)
    api.services.inbox.replace([PUSHED], [provider])
    before = await count_stored(api, clock)
    full = "CREATE TRIGGER no_audit BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'full'); END"
    await database.write(lambda c: c.execute(text(full)) and None)
    assert (await admin.send("POST", f"{PATH}/1/retry")).status >= 500
    assert await count_stored(api, clock) == before
    await database.write(lambda c: c.execute(text("DROP TRIGGER no_audit")) and None)
    await admin.ask("POST", f"{PATH}/1/retry")
    assert await count_stored(api, clock) == before + 1


@on_sqlite
async def test_a_person_retries_what_is_selected(api, use):
    person = Person(api)
    facts = ProviderFacts(PUSHED, "push", frozenset({Capability.PUSH}))
    api.services.providers = (*api.services.providers, facts)
    await use(BROKEN)
    await push(api, CASES)
    await push(api, [{"no": "d", "title": "x" * 16_384}, CASES[1]])
    await use(HALF)
    await person.sign_in("viewer")
    assert "Retry selected" not in await person.text("/quarantine")
    await person.sign_in("operator")
    assert (await person.html("/quarantine")).count('name="record"') == 2
    assert "also retries other rejected incidents" in await person.text("/quarantine/1")
    text = await person.text("/quarantine/3")
    assert "larger than the 16 KiB" in text
    assert "have the sender push the record again" in text
    html = await person.html("/quarantine")
    token = html.partition('name="form_token" value="')[2].partition('"')[0]
    fields = {"form_token": token, "record": "1"}
    response = await person.post("/quarantine/retry?provider=our-scripts", **fields)
    assert response.status == 303
    after = await person.text(response.headers["Location"])
    assert "1 of 1 selected record retried. Tocsin has stored" in after
    response = await person.post("/quarantine/retry", **fields | {"record": "2"})
    assert "0 of 1 selected record retried. 2 : The record still" in text_of(await response.text())
    assert await stored(api) == ["a", "b", "d"]
    row = await api.services.database.read(load_quarantined_row, 1)
    assert row.retried_by is not None
