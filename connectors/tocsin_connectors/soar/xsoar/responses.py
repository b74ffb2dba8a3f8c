"""Responses and spellings of XSOAR: incidents, labels, queries and refusals."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from tocsin import Broken, Json, Observable, Refused

KEY_LABEL = "tocsin_key"
"""The label that holds the key, for where XSOAR keeps no mirror id of ours."""


def expect_object(answer: Json) -> dict[str, Any]:
    """Return an object; raises `Broken` for anything else."""
    if isinstance(answer, dict):
        return answer
    raise Broken("XSOAR answered something else than an object")


def get_incident_id(incident: Json) -> str:
    """Return the id of an incident; raises `Broken` where it has none."""
    match incident:
        case {"id": str(identifier)} if identifier:
            return identifier
    raise Broken("XSOAR answered without an id")


def has_key(incident: Json, key: str) -> bool:
    """Return whether an incident that was found has this key, as the mirror id or in a label."""
    match incident:
        case {"dbotMirrorId": str(known)} if known == key:
            return True
        case {"labels": [*labels]}:
            return any(label == {"type": KEY_LABEL, "value": key} for label in labels)
    return False


def get_type(observable: Observable) -> str:
    """Return what XSOAR calls the kind of an observable, else what Tocsin does."""
    return observable.called or observable.kind.value


def format_line(kind: str, value: str) -> str:
    """Return an observable as one line."""
    return f"{kind}: {' '.join(value.split())}"


def quote_phrase(text: str) -> str:
    """Return a text as a phrase of a query, which is written as for Lucene."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def is_stale(refused: Refused) -> bool:
    """Return whether somebody else has changed what was to be changed."""
    return refused.status == HTTPStatus.CONFLICT or b"errOptimisticLock" in refused.response


def is_not_found(refused: Refused) -> bool:
    """Return whether there is no such incident, which XSOAR answers with 400 as well."""
    return refused.status == HTTPStatus.NOT_FOUND or b"Item not found" in refused.response


def has_no_war_room(refused: Refused) -> bool:
    """Return whether nobody has begun to investigate the incident."""
    return b"Could not find investigation" in refused.response or b"noInv" in refused.response
