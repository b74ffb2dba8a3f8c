"""Records that could not be parsed, over HTTP and in the console."""

from __future__ import annotations

from datetime import timedelta
from html import unescape
from urllib.parse import parse_qsl

import pytest

from api_server import PUSHED, URL, problem
from incident_rows import add_quarantined
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
    await api.services.database.write(add_quarantined, provider, clock.now())
    assert words in await viewer.text("/quarantine/1")
