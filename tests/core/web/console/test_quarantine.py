"""Records that could not be parsed, over HTTP and in the console."""

from __future__ import annotations

from datetime import timedelta
from html import unescape
from urllib.parse import parse_qsl

import pytest

from api_server import PUSHED, URL, problem
from console import text_of
from incident_rows import add_quarantined
from tocsin.hookspecs import Capability
from tocsin.incidents import ProviderFacts
from tocsin.incidents.coverage.positions import StreamKey, load_position
from tocsin.incidents.storage.alerts import IncidentPolicy
from tocsin.incidents.storage.store import store_page
from tocsin.model import Covered, Page, Rejected
from tocsin.web.schemas.quarantine import QuarantinedRecord, QuarantineList

PATH = "/api/admin/quarantine"
KEY = StreamKey("edge", "changed")
HOSTILE = "<script>alert('{{ 7 * 7 }}')</script>"
CONTENT = b'{"id": 4711, "title": "' + HOSTILE.encode() + b'", "note": "' + b"x" * 300 + b'"}'


@pytest.fixture
async def rejected(api, clock) -> None:
    """A record of the provider `edge` that was rejected, and a later read in the same hour."""
    await _read(
        api, clock, Rejected(source="changed", location="item 7", reason=HOSTILE, content=CONTENT)
    )
    clock.advance(minutes=1)
    await _read(api, clock)


async def _read(api, clock, *rejected: Rejected) -> None:
    """Store a page that covers the minute before last."""
    end = clock.now() - timedelta(minutes=1)
    covered = Covered(source="", start=end - timedelta(minutes=1), end=end)
    position = await api.services.database.read(load_position, KEY)
    await api.services.database.write(
        store_page,
        KEY,
        Page(next_position={}, covered=(covered,), rejected=rejected),
        revision=position.revision,
        policy=IncidentPolicy(URL),
        now=clock.now(),
    )


@pytest.mark.usefixtures("rejected")
async def test_a_record_is_listed_and_read_with_the_range_to_read_again(api, admin, clock):
    await api.services.database.write(add_quarantined, PUSHED, clock.now(), 2)
    listed = await admin.read(f"{PATH}?limit=2")
    QuarantineList.model_validate(listed)
    assert (listed["total"], [each["provider"] for each in listed["records"]]) == (3, [PUSHED] * 2)
    rest = await admin.read(f"{PATH}?limit=2&cursor={listed['next_cursor']}")
    [item] = rest["records"]
    assert rest["next_cursor"] is None
    assert (await admin.read(f"{PATH}?provider=edge"))["records"] == [item]
    assert item["content"] == CONTENT[:200].decode()
    record = await admin.read(f"{PATH}/{item['id']}")
    QuarantinedRecord.model_validate(record)
    assert (record["reason"], record["content"]) == (HOSTILE, CONTENT.decode())
    times = ("2026-11-21T11:58:00.000Z", "2026-11-21T12:00:00.000Z")
    assert (record["from"], record["to"]) == times
    pushed = await admin.read(f"{PATH}/{listed['records'][0]['id']}")
    assert (pushed["from"], pushed["to"]) == (None, None)


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("name", ["17", "0", "x", "9" * 30])
async def test_a_record_that_is_not_there_is_not_found(admin, name):
    await problem(await admin.send("GET", f"{PATH}/{name}"), 404)


@pytest.mark.usefixtures("rejected")
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_person_finds_the_record_and_reads_it_again(person):
    assert 'href="/quarantine?provider=edge">1</a>' in await person.html("/providers")
    text = await person.text("/quarantine?provider=edge")
    assert HOSTILE in text
    assert "<script>alert" not in await person.html("/quarantine")
    place = (await person.html("/quarantine")).partition('href="/quarantine/')[2].partition('"')[0]
    html = await person.html(f"/quarantine/{place}")
    assert "<script>alert" not in html
    assert "x" * 300 in html
    form = unescape(html.partition('href="/admin/new-backfill?')[2].partition('"')[0])
    assert await person.submit(
        f"/admin/new-backfill?{form}", "/admin/new-backfill", **_fields(form)
    )
    assert "Backfills of this range Started" in await person.text(f"/quarantine/{place}")
    await person.sign_in("viewer")
    assert "/admin/new-backfill" not in await person.html(f"/quarantine/{place}")


def _fields(query: str) -> dict[str, str]:
    return dict(parse_qsl(query))


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("provider", "words"),
    [
        ("sensors", "does not support backfills"),
        ("gone", "no longer configured"),
    ],
)
async def test_what_cannot_be_read_again_has_another_next_step(api, clock, viewer, provider, words):
    await api.services.database.write(add_quarantined, provider, clock.now(), stream="alerts")
    assert words in await viewer.text("/quarantine/1")


@pytest.fixture
def push_provider(api) -> None:
    """List the provider that takes the pushes of every test."""
    facts = ProviderFacts(PUSHED, "push", frozenset({Capability.PUSH}))
    api.services.providers = (*api.services.providers, facts)


@pytest.mark.usefixtures("push_provider")
async def test_a_push_is_retried_with_a_button(api, clock, person):
    content = b'{"external_id": "case-17", "title": "Odd sign-in"}'
    await api.services.database.write(add_quarantined, PUSHED, clock.now(), content=content)
    await api.services.database.write(add_quarantined, PUSHED, clock.now())
    await person.sign_in("viewer")
    assert "you need the operator role" in await person.text("/quarantine/1")
    await person.sign_in("operator")
    text = await person.submit("/quarantine/1", "/quarantine/1/retry")
    assert "Record retried." in text
    assert "Retried by" in text
    assert "/quarantine/1/retry" not in await person.html("/quarantine/1")
    assert "Retried 2026-11-21" in await person.text("/quarantine")
    failure = await person.submit("/quarantine/2", "/quarantine/2/retry", status=409)
    assert "The record still cannot be parsed: the body is not JSON" in failure


@pytest.mark.usefixtures("push_provider")
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_form_of_another_site_retries_nothing(api, clock, person):
    await api.services.database.write(add_quarantined, PUSHED, clock.now(), content=b"[]")
    await person.sign_in("operator")
    response = await person.post("/quarantine/1/retry", form_token="wrong")
    assert response.status == 403
    await person.sign_in("analyst")
    html = await person.html("/quarantine/1")
    token = html.partition('name="form_token" value="')[2].partition('"')[0]
    assert (await person.post("/quarantine/1/retry", form_token=token)).status == 403
    assert "Retried" not in await person.text("/quarantine")


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"timestamp": "2026-11-21T09:30:00.5+0000", "alert": 7', "from 2026-11-21 09:30"),
        (b'{"timestamp": "yesterday"}', "no valid time in the record"),
    ],
)
async def test_the_time_in_a_record_is_suggested(api, clock, person, content, words):
    values = {"stream": "eve", "content": content}
    await api.services.database.write(add_quarantined, "edge", clock.now(), **values)
    html = await person.html("/quarantine/1")
    assert words in text_of(html)
    assert "Tocsin retries this record with a backfill" in text_of(html)
    form = _fields(unescape(html.partition('href="/admin/new-backfill?')[2].partition('"')[0]))
    if "no valid" in words:
        assert form["from"] == "2026-11-21T11:00:00.000Z"
    else:
        assert form["from"] == "2026-11-21T09:29:00.500Z"
        assert form["to"] == "2026-11-21T09:31:00.500Z"


@pytest.mark.usefixtures("push_provider")
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_push_that_cannot_be_retried_says_why(api, clock, viewer):
    values = {"location": "incident 2 of 2"}
    await api.services.database.write(add_quarantined, PUSHED, clock.now(), **values)
    text = await viewer.text("/quarantine/1")
    assert "Tocsin did not store the part of the request" in text
    assert "have the sender push the record again" in text
