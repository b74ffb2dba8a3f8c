"""Event content that case-management platforms receive."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from tocsin.model import Delivery, Entity, EntityKind, Event, EventType, IncidentDisposition

_NOTABLE = ("malicious", "suspicious")
_FIRST = 1
_LONGEST = 2_000  # longer values are omitted, because a truncated value would be wrong


def is_failure(event: Event) -> bool:
    """Return whether an event reports a problem with a schedule."""
    return event.event_type in (EventType.INVESTIGATION_FAILED, EventType.SCHEDULE_DISABLED)


def is_about_object(event: Event) -> bool:
    """Return whether an event is about its subject's object.

    Reports are about their incidents' objects instead.
    """
    return event.event_type is not EventType.INVESTIGATION_COMPLETED


def build_object_key(event: Event) -> str:
    """Return the key of the object that an event creates.

    Each series of a schedule's failures has its own key, because the object of an earlier series
    may be closed.
    """
    return f"{event.key}/{event.id}" if is_failure(event) else event.key


def build_note_title(event: Event) -> str:
    """Return the title of the note that an event adds to an object."""
    return {
        EventType.INVESTIGATION_COMPLETED: "Tocsin: investigation completed",
        EventType.INVESTIGATION_FAILED: "Tocsin: scheduled investigation failed",
        EventType.SCHEDULE_DISABLED: "Tocsin: schedule disabled",
    }.get(event.template_type, "Tocsin")


def find_disposition(event: Event) -> IncidentDisposition | None:
    """Return the disposition of the event's incident; None if there is no disposition."""
    found = event.data.get("disposition")
    return None if found is None else IncidentDisposition(found)


def build_closing_reason(event: Event) -> str:
    """Return the comment that is added when an event closes an object."""
    disposition = find_disposition(event)
    added = "" if disposition is None else f" Disposition: {disposition.replace('-', ' ')}."
    return f"Closed by Tocsin, as configured.{added}"


def list_known_objects(delivery: Delivery) -> Sequence[str]:
    """Return the platform's known objects that an event belongs to.

    A completed investigation belongs to the objects of the incidents that it is about. The
    first of a schedule's consecutive failures does not belong to an object yet.
    """
    event = delivery.event
    if event.event_type is EventType.INVESTIGATION_FAILED and _is_first(event):
        return ()
    if delivery.remote_id is not None:
        return (delivery.remote_id,)
    related = delivery.related.items()
    return tuple(dict.fromkeys(key for subject, key in related if subject.startswith("incident:")))


def list_recovered_objects(delivery: Delivery) -> Sequence[str]:
    """Return the objects that track a schedule's failures, if the event is a completed run."""
    if delivery.event.event_type is not EventType.INVESTIGATION_COMPLETED:
        return ()
    related = delivery.related.items()
    return tuple(key for subject, key in related if subject.startswith("schedule:"))


@dataclass(frozen=True, slots=True)
class Observable:
    """An entity with the platform's name for its kind."""

    kind: EntityKind
    value: str
    called: str | None
    """The kind's name in the receiver's contract; None if the contract does not contain one."""


def list_observables(delivery: Delivery, most: int) -> Sequence[Observable]:
    """Return an event's observables: the incident's entities, or a report's notable entities."""
    names = delivery.contract.entities if delivery.contract else {}
    found = dict.fromkeys(_entities(delivery.event.context))
    return [Observable(entity.kind, entity.value, names.get(entity.kind)) for entity in found][
        :most
    ]


def _is_first(event: Event) -> bool:
    return event.data.get("consecutive_failures") == _FIRST


def _entities(context: Mapping[str, Any]) -> Iterator[Entity]:
    for record in (*_of_incident(context), *_of_report(context)):
        match record:
            case {"kind": kind, "value": str(value)} if value and len(value) <= _LONGEST:
                with suppress(ValueError):  # a kind from a later version
                    yield Entity(EntityKind(kind), value)


def _of_incident(context: Mapping[str, Any]) -> Iterable[Any]:
    match context:
        case {"incident": {"entities": [*records]}}:
            return records
    return ()


def _of_report(context: Mapping[str, Any]) -> Iterator[Any]:
    match context:
        case {"report": {"entities": [*assessed]}}:
            for each in assessed:
                match each:
                    case {"entity": record, "disposition": word} if word in _NOTABLE:
                        yield record
