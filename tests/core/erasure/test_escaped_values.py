"""Erased values that JSON spells with escape sequences."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from sqlalchemy import select

from tocsin.incidents.coverage import PUSH_STREAM, attach_push
from tocsin.incidents.coverage.positions import StreamKey
from tocsin.incidents.storage.store import IncidentPolicy, store_received
from tocsin.model import Entity, EntityKind, Received, Rejected
from tocsin.store import Erasure, Redactor, digest_value
from tocsin.store.tables import quarantine

from .conftest import NAME

KEY = StreamKey("edge", PUSH_STREAM)
POLICY = IncidentPolicy("https://tocsin.example.org")
NAMES = {"j.doe": "X", "CORP\\ana": "Y", "nina": "Z"}


def spell(name: str) -> list[str]:
    """Return the name as it is, and as JSON can escape it: as little as possible, more, all."""
    short, ascii_ = json.dumps(name, ensure_ascii=False)[1:-1], json.dumps(name)[1:-1]
    return [name, short, ascii_, "".join(f"\\u{ord(each):04x}" for each in name)]


def build(words: list[str]) -> list[bytes]:
    """Return contents with the words: one that is no JSON, and JSON, some of which is cut."""
    first, *escaped = words
    texts = [f'{{"a": 1.50, "u": "b\\n{each}{end}' for each in escaped for end in ('"}', '", "\\')]
    return [each.encode() for each in (f"\0 {first}", *texts)]


def reject(content: bytes, request: bytes | None = None) -> Rejected:
    return Rejected(source="", location="1", reason="bad", content=content, request=request)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (rb'"a\nj.doe \u006A\u002edoe CORP\\ana"', rb'"a\nX X Y"'),
        (rb'"a\\nj.doe /j.doe\/ \"j.doe\""', rb'"a\\nj.doe /X\/ \"X\""'),
        (rb'["j.do\u0065\ud83d\ude00\ud83d", "j.doe\u00', rb'["X\ud83d\ude00\ud83d", "X\u00'),
        (rb'"{\"u\": \"CORP\\\\ana, \\u006ana\"}"', rb'"{\"u\": \"Y, \\u006ana\"}"'),
        (rb'{"a": 1.50, "a": "\nina \u006eina"}', rb'{"a": 1.50, "a": "\nina Z"}'),
        (b"\xff \\xj.doe \\j.doe \\", b"\xff \\xj.doe \\X \\"),
        (r"found 'CORP\\ana'; use C:\nj.doe", r"found 'Y'; use C:\nj.doe"),
        (r'{"u": "\u006a.doe \\nina"}', r'{"u": "X \\Z"}'),
    ],
)
def test_an_escaped_value_is_redacted_and_the_rest_stays(before, after):
    key = b"k" * 32
    digests = [(digest_value(key, name), len(name), word) for name, word in NAMES.items()]
    assert Redactor(key, [Erasure("user", *each) for each in digests]).redact(before) == after


@pytest.mark.parametrize("is_erased_first", [True, False])
@pytest.mark.parametrize("name", [NAME, "CORP\\ana", 'the "boss"'])
async def test_no_spelling_of_an_erased_value_stays_in_the_quarantine(
    eraser, request_, database, name, is_erased_first
):
    async def store() -> None:
        part = Received(rejected=tuple(reject(each, each) for each in build(spell(name))))
        await database.write(store_received, KEY, part, policy=POLICY, now=eraser._clock.now())

    if not is_erased_first:
        await store()
    erased = await eraser.erase(replace(request_, entity=Entity(EntityKind.USER, name)))
    if is_erased_first:
        await store()
    query = select(quarantine.c.content, quarantine.c.request).order_by(quarantine.c.id)
    stored = await database.read(lambda c: c.execute(query).all())
    assert stored == [(each, each) for each in build([erased["pseudonym"]] * 4)]


async def test_the_request_of_an_incident_that_is_rejected_afterwards_names_the_pseudonym(
    eraser, request_, database
):
    pseudonym = (await eraser.erase(request_))["pseudonym"]
    request, now = f'["{NAME}", {json.dumps(NAME)}]'.encode(), eraser._clock.now()
    part = attach_push(Received(rejected=(reject(b"{}"),)), request, now)
    await database.write(store_received, KEY, part, policy=POLICY, now=now)
    stored = await database.read(lambda c: c.scalar(select(quarantine.c.request)))
    assert stored == f'["{pseudonym}", "{pseudonym}"]'.encode()
