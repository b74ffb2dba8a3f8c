"""Senders that push too much, too slowly, or without permission."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from io import BytesIO

import pytest
from sqlalchemy import func, select

from api_callers import until
from api_server import PUSH_TOKEN, PUSHED, api, problem
from tocsin.accounting import Period, report_period
from tocsin.incidents import list_coverage, list_quarantine
from tocsin.mapping.template import LIMITS, MAX_REJECTED
from tocsin.store.tables import incidents
from tocsin.web import push_bodies

__all__ = ["api"]

on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)

TOKEN = {"Authorization": f"Bearer {PUSH_TOKEN}"}
WRONG = {"Authorization": "Bearer a-token-of-somebody-else"}
CASE = {"external_id": "case-17", "title": "Odd sign-in", "severity": "High"}
BODY_LIMIT = 16 * 2**20


async def push(api, body=CASE, headers=TOKEN):
    """Return the response to a body: JSON, bytes, or an iterator that does not declare a length."""
    if not isinstance(body, AsyncIterator):
        body = BytesIO(body if isinstance(body, bytes) else json.dumps(body).encode())
    headers = {"Content-Type": "application/json"} | headers
    return await api.client.post(f"/api/push/{PUSHED}", data=body, headers=headers)


async def counts(api, body) -> dict:
    """Return the counts of an accepted push."""
    response = await push(api, body)
    assert response.status == 200, await response.text()
    return await response.json() | {"provider": None}


def counted(received: int, new: int, rejected: int) -> dict:
    numbers = {"received": received, "new": new, "changed": 0, "rejected": rejected}
    return {"provider": None, **numbers}


async def stored(api) -> int:
    return await api.services.database.read(
        lambda connection: connection.scalar(select(func.count()).select_from(incidents))
    )


async def test_a_large_list_is_stored_in_short_transactions(api, monkeypatch):
    sizes = []
    write = api.services.database.write

    async def count(work, *arguments):
        before = await stored(api)
        result = await write(work, *arguments)
        sizes.append(await stored(api) - before)
        return result

    monkeypatch.setattr(api.services.database, "write", count)
    total = LIMITS.batch_records + 1
    body = [CASE | {"external_id": f"case-{number}"} for number in range(total)]
    assert await counts(api, body) == counted(total, new=total, rejected=0)
    assert [size for size in sizes if size] == [LIMITS.batch_records, 1]


@on_sqlite
async def test_one_good_record_among_many_bad_ones_is_stored_and_the_others_counted(api):
    bad = LIMITS.batch_records
    found = await counts(api, [{}] * bad + [CASE])
    assert found == counted(bad + 1, new=1, rejected=bad)
    kept = (await api.services.database.read(list_quarantine, PUSHED, 1_000)).records
    assert len(kept) == MAX_REJECTED + 1
    assert kept[0]["reason"].startswith(f"{bad - MAX_REJECTED} further records were rejected")


@on_sqlite
async def test_bodies_wait_while_others_need_the_memory(api, monkeypatch):
    monkeypatch.setattr(push_bodies, "MAX_BYTES", 1_000)
    refusal = await push(api, CASE | {"description": "x" * 1_000})
    await problem(refusal, 503)
    assert refusal.headers["Retry-After"] == "5"
    assert (await push(api)).status == 200


@on_sqlite
async def test_a_wrong_token_is_refused_before_the_body_is_read(api):
    never_ends = asyncio.Event()

    async def body():
        yield b"["
        await never_ends.wait()

    async with asyncio.timeout(5):
        await problem(await push(api, body(), headers=WRONG), 401)


def forged(clock) -> dict[str, str]:
    """Return the headers of a signature that only the body can disprove."""
    moment = str(int(clock.now().timestamp()))
    signature = "v1," + "A" * 43 + "="
    return {"webhook-id": "1", "webhook-timestamp": moment, "webhook-signature": signature}


@asynccontextmanager
async def held_open(api, headers, count: int) -> AsyncIterator[None]:
    """Keep so many pushes under way, each with a few bytes of its body."""
    done = asyncio.Event()

    async def body():
        yield b"["
        await done.wait()

    pushes = [asyncio.create_task(push(api, body(), headers)) for _ in range(count)]
    try:
        async with asyncio.timeout(5):
            await until(lambda: api.services.push_bodies.under_way == count)
        yield
    finally:
        done.set()
        await asyncio.gather(*pushes)


@on_sqlite
async def test_forged_signatures_occupy_a_few_bodies_and_no_sender_with_a_token(
    api, clock, monkeypatch
):
    monkeypatch.setattr(push_bodies, "MAX_UNPROVEN_FROM_ADDRESS", 3)
    async with held_open(api, forged(clock), 3):
        await problem(await push(api, headers=forged(clock)), 503)
        assert (await push(api)).status == 200
    assert api.services.push_bodies.under_way == 0
    await problem(await push(api, headers=forged(clock)), 401)


@on_sqlite
async def test_unproven_bodies_of_all_addresses_leave_memory_to_senders_with_a_token(
    api, clock, monkeypatch
):
    monkeypatch.setattr(push_bodies, "MAX_BYTES_UNPROVEN", 1_000)
    body = json.dumps(CASE | {"description": "x" * 1_000}).encode()
    await problem(await push(api, body, forged(clock)), 503)
    assert (await push(api, body)).status == 200


@on_sqlite
@pytest.mark.parametrize("signature", ["x", "v1,AAAA", "v1a," + "A" * 43 + "=", "v1, v1,"])
async def test_what_cannot_be_a_signature_is_refused_before_the_body_is_read(api, clock, signature):
    async def body():
        yield b"["
        await asyncio.Event().wait()

    async with asyncio.timeout(5):
        headers = forged(clock) | {"webhook-signature": signature}
        await problem(await push(api, body(), headers), 401)


@on_sqlite
async def test_what_is_refused_is_in_the_ledger_and_in_the_proof(api, clock, monkeypatch):
    monkeypatch.setattr(push_bodies, "BODY_TIMEOUT", 0.05)
    slow = asyncio.Event()

    async def late():
        yield b"["
        await slow.wait()

    await problem(await push(api, b" " * (BODY_LIMIT + 1)), 413)
    await problem(await push(api, late()), 408)
    for _ in range(3):
        await push(api, headers=WRONG)
    await api.services.inbox.flush()
    found = await api.services.database.read(list_coverage, PUSHED, 10)
    failed = {row["outcome"]: (row["stream"], row["pages"]) for row in found}
    assert failed == {
        "too-large": ("push", 1),
        "too-slow": ("push", 1),
        "credentials-refused": ("push", 3),
    }
    period = Period(clock.now() - timedelta(hours=1), clock.now())
    report = await api.services.database.read(report_period, period, clock.now())
    assert [one["kind"] for one in report["unaccounted"]] == ["refused-push"] * 3
    assert f"{PUSHED}/push" in report["unaccounted"][0]["what"]


@on_sqlite
async def test_refused_pushes_of_an_hour_share_a_row(api, clock):
    for _ in range(3):
        await push(api, b" " * (BODY_LIMIT + 1))
        await push(api)
        await api.services.inbox.flush()
        clock.advance(minutes=1)
    found = await api.services.database.read(list_coverage, PUSHED, 10)
    assert [row["pages"] for row in found if row["outcome"] == "too-large"] == [3]
