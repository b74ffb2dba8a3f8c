"""XSOAR's responses and formats: incidents, labels, queries and rejected requests."""

from __future__ import annotations

from http import HTTPStatus

from tocsin import Broken, Json, Observable, Refused

KEY_LABEL = "tocsin_key"
"""Label that contains the key, in case XSOAR does not keep the mirror ID."""


def get_incident_id(incident: Json) -> str:
    """Return the ID of an incident. Raises `Broken` if it has none."""
    match incident:
        case {"id": str(identifier)} if identifier:
            return identifier
    raise Broken("XSOAR returned a response without an ID")


def has_key(incident: Json, key: str) -> bool:
    """Return whether an incident has this key as its mirror ID or in a label."""
    match incident:
        case {"dbotMirrorId": str(known)} if known == key:
            return True
        case {"labels": [*labels]}:
            return any(label == {"type": KEY_LABEL, "value": key} for label in labels)
    return False


def get_type(observable: Observable) -> str:
    """Return the XSOAR type of an observable, or else Tocsin's kind."""
    return observable.called or observable.kind.value


def format_line(kind: str, value: str) -> str:
    """Return an observable as one line."""
    return f"{kind}: {' '.join(value.split())}"


def quote_phrase(text: str) -> str:
    """Quote a text as a phrase of a Lucene-like query."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def is_stale(refused: Refused) -> bool:
    """Return whether the object was changed concurrently."""
    return refused.status == HTTPStatus.CONFLICT or b"errOptimisticLock" in refused.response


def is_not_found(refused: Refused) -> bool:
    """Return whether the incident does not exist; XSOAR may then return 400."""
    return refused.status == HTTPStatus.NOT_FOUND or b"Item not found" in refused.response


def has_no_war_room(refused: Refused) -> bool:
    """Return whether the investigation has not started."""
    return b"Could not find investigation" in refused.response or b"noInv" in refused.response
