"""Log entries of Example, and their conversion to events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import Field, ValidationError

from tocsin import Entity, SiemEvent
from tocsin_example.cases import ENTITIES, Moment, Observable, Record


class Entry(Record):
    """A log entry; the time is required, because queries have a time window."""

    id: str = Field(min_length=1)
    logged_at: Moment
    text: str = ""
    entities: tuple[Observable, ...] = ()


def events_of(records: Iterable[Mapping[str, Any]]) -> Iterator[SiemEvent]:
    """Yield the events of log entries; malformed entries are skipped."""
    for record in records:
        try:
            entry = Entry.model_validate(record)
        except ValidationError:
            continue
        yield SiemEvent(
            external_id=entry.id,
            occurred_at=entry.logged_at,
            summary=" ".join(entry.text.split()) or "an entry without a text",
            entities=tuple(
                Entity(ENTITIES[entity.type], entity.value)
                for entity in entry.entities
                if entity.type in ENTITIES and entity.value
            ),
            fields={"text": entry.text},
        )
