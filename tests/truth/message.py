"""What a SIEM sends of its cases, in Tocsin's own shape, and what it makes of the answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import orjson
from aiohttp import ClientResponse

from tocsin.testing import Case


def body_of(cases: Sequence[Case]) -> bytes:
    """Return what is sent of these versions: one by itself or several; some are not even JSON."""
    shapes = [malformed(case) if case.malformed else shape(case) for case in cases]
    body = orjson.dumps(shapes if len(shapes) > 1 else shapes[0])
    is_cut = len(cases) == 1 and cases[0].malformed and cases[0].number % 2
    return body[:-1] if is_cut else body


def shape(case: Case) -> dict[str, Any]:
    """Return a version in Tocsin's own shape, with an alert of its own."""
    return {
        "external_id": case.id,
        "title": case.title,
        "description": case.description,
        "severity": case.severity,
        "status": case.status,
        "occurred_at": case.created_at,
        "changed_at": case.changed_at,
        "merged_into": case.merged_into,
        "entities": [{"kind": entity.kind, "value": entity.value} for entity in case.entities],
        "alerts": [{"external_id": case.changed_at.isoformat()}],
    }


def malformed(case: Case) -> dict[str, Any]:
    return {"nameless": case.changed_at, "title": case.title[:100]}


def forged(case: Case) -> Case:
    return replace(case, title="Nothing happened", changed_at=case.changed_at + timedelta(hours=1))


def judge(
    response: ClientResponse, answer: dict[str, Any], cases: Sequence[Case]
) -> timedelta | None:
    """Return after how long to send it again, None where it is taken or need not be."""
    rejected = sum(case.malformed for case in cases)
    if response.status == 503:
        return timedelta(seconds=int(response.headers["Retry-After"]))
    if response.status == 422:
        assert rejected == len(cases), answer
    else:
        assert response.status == 200, answer
        assert (answer["received"], answer["rejected"]) == (len(cases), rejected)
    return None
