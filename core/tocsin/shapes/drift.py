"""Drift: needed fields that vanished from a vendor's records, or changed their type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from tocsin.clock import isoformat
from tocsin.shapes.contract import EMPTY_LIST, FieldSpec, RecordContract
from tocsin.shapes.history import FieldHistory, ShapeHistory
from tocsin.shapes.samples import ShapeSample

DRIFT_PERIOD = timedelta(days=1)
"""How long a field must be missing, or of another type, in all records."""
FORGET_OPTIONAL_AFTER = timedelta(days=14)
"""After which an optional field that vanished counts as usual: it may no longer apply."""
MAX_CHANCE = 0.001
"""The chance, by its earlier frequency, that an optional field is missing by accident."""
MAX_APPEARED = 5


class DriftProblem(StrEnum):
    """Kind of change to a required field."""

    MISSING = "missing"
    CHANGED_TYPE = "changed-type"


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldDrift:
    """A needed field that records no longer have as the mapping expects it."""

    kind: str
    """The kind of record: a stream, or the details of its records."""
    field: str
    problem: DriftProblem
    expected: str
    found: str | None
    """The types found instead; None where it is missing."""
    since: datetime
    records: int
    """The sampled records since then, none of which had it."""
    appeared: tuple[str, ...] = ()
    """New fields in the same object since then, which may replace it."""

    def __str__(self) -> str:
        """Return a one-line description for human readers."""
        what = "is missing" if self.found is None else f"is {self.found}, not {self.expected},"
        line = f"{self.kind}: {self.field} {what} since {isoformat(self.since)}"
        return f"{line}; new fields: {', '.join(self.appeared)}" if self.appeared else line

    def to_json(self) -> dict[str, Any]:
        """Return the JSON of the drift."""
        return {
            "kind": self.kind,
            "field": self.field,
            "problem": self.problem.value,
            "expected": self.expected,
            "found": self.found,
            "since": isoformat(self.since),
            "records": self.records,
            "appeared": list(self.appeared),
        }


def find_drift(kind: str, contract: RecordContract, shape: ShapeHistory) -> Iterator[FieldDrift]:
    """Yield the needed fields that no record has had as expected for a day.

    Times are those of records, so that a day without records proves nothing. A required field
    counts from the first record on; an optional one only if it was there before and its absence is
    no accident.
    """
    if shape.last_at is None:
        return
    for path, spec in contract.fields.items():
        history = shape.fields.get(path)
        if history is None or history.missed_since is None:
            continue
        found = _find_types(history)
        if _is_drift(history, spec, shape.last_at, is_other_type=bool(found)):
            yield FieldDrift(
                kind=kind,
                field=path,
                problem=DriftProblem.CHANGED_TYPE if found else DriftProblem.MISSING,
                expected=str(spec),
                found=" | ".join(found) or None,
                since=history.missed_since,
                records=history.missed,
                appeared=_find_appeared(path, shape.others, history.missed_since),
            )


def compare_samples(
    contract: RecordContract, samples: Sequence[ShapeSample]
) -> Iterator[tuple[str, str, str]]:
    """Yield the fields that no sample has as expected: path, expected types, and types found.

    Optional fields are compared only by their type; nothing is found of a missing field.
    """
    for path, spec in contract.fields.items():
        types = frozenset[str]().union(*(one.types.get(path, frozenset()) for one in samples))
        found = sorted(types - {"null", EMPTY_LIST})
        if samples and not spec.accepts(types) and (found or spec.is_required):
            yield path, str(spec), " | ".join(found)


def _is_drift(
    history: FieldHistory, spec: FieldSpec, last_at: datetime, *, is_other_type: bool
) -> bool:
    assert history.missed_since is not None  # noqa: S101 - checked by the caller
    age = last_at - history.missed_since
    if age < DRIFT_PERIOD:
        return False
    if spec.is_required or is_other_type:
        return True
    by_accident = (1 - history.share) ** history.missed < MAX_CHANCE
    return by_accident and age < FORGET_OPTIONAL_AFTER


def _find_types(history: FieldHistory) -> list[str]:
    """Return the unexpected types that records have had for a day."""
    seen = history.wrong.items()
    return sorted(name for name, (first, last) in seen if last - first >= DRIFT_PERIOD)


def _find_appeared(
    path: str, others: Mapping[str, tuple[datetime, datetime]], since: datetime
) -> tuple[str, ...]:
    holder = path.rpartition(".")[0]
    new = (name for name, (first, _) in others.items() if first >= since)
    beside = sorted(name for name in new if name.rpartition(".")[0] == holder)
    return tuple(name for name in beside if not name.endswith("*"))[:MAX_APPEARED]
