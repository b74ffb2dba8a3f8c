"""History of the shapes of one kind of record: when each needed field was last as expected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Self

from tocsin.clock import isoformat, isoformat_or_none
from tocsin.shapes.contract import EMPTY_LIST, FieldSpec, RecordContract
from tocsin.shapes.samples import ShapeSample

MAX_OTHERS = 200
"""The fields beside the needed ones that are remembered."""
FORGET_AFTER = timedelta(days=30)
"""The age at which such a field is forgotten if there are too many."""
_EMPTY = frozenset(("null", EMPTY_LIST))
"""Types of members without a value, which are as good as missing."""
PRIOR_RECORDS = 10
"""Records without a field that are assumed beside those seen, so that few of them prove little."""
MAX_COUNT = 10_000
"""The count above which older records weigh half."""


@dataclass(slots=True)
class FieldHistory:
    """When one needed field was last as expected, and how it has been since."""

    good: int = 0
    """The records that had it in an expected type, of `of`."""
    of: int = 0
    missed: int = 0
    """The records since then that had not."""
    missed_since: datetime | None = None
    wrong: dict[str, tuple[datetime, datetime]] = field(default_factory=dict)
    """Unexpected types since then, with their first and last time."""

    @property
    def share(self) -> float:
        """The share of records that had it before, estimated low where few were seen."""
        return self.good / (self.of + PRIOR_RECORDS)

    def note(self, types: frozenset[str], spec: FieldSpec, at: datetime) -> None:
        """Add one record."""
        if spec.accepts(types):
            self.good, self.of = self.good + 1, self.of + self.missed + 1
            self.missed, self.missed_since, self.wrong = 0, None, {}
            if self.of > MAX_COUNT:
                self.good, self.of = self.good // 2, self.of // 2
            return
        self.missed += 1
        self.missed_since = self.missed_since or at
        for name in types - _EMPTY:
            first, _ = self.wrong.get(name, (at, at))
            self.wrong[name] = first, at

    def to_json(self) -> dict[str, Any]:
        """Return the JSON to store; the inverse of `parse`."""
        wrong = {name: [isoformat(at) for at in times] for name, times in self.wrong.items()}
        return {
            "good": self.good,
            "of": self.of,
            "missed": self.missed,
            "missed_since": isoformat_or_none(self.missed_since),
            "wrong": wrong,
        }

    @classmethod
    def parse(cls, stored: Mapping[str, Any]) -> Self:
        """Return the history of stored JSON."""
        since, wrong = stored["missed_since"], stored["wrong"].items()
        return cls(
            good=stored["good"],
            of=stored["of"],
            missed=stored["missed"],
            missed_since=since and datetime.fromisoformat(since),
            wrong={name: _parse_times(times) for name, times in wrong},
        )


@dataclass(slots=True)
class ShapeHistory:
    """Everything that is remembered of one kind of record."""

    last_at: datetime | None = None
    """The time of the latest record."""
    fields: dict[str, FieldHistory] = field(default_factory=dict)
    others: dict[str, tuple[datetime, datetime]] = field(default_factory=dict)
    """Fields beside the needed ones, with their first and last time."""

    def note(self, sample: ShapeSample, contract: RecordContract) -> None:
        """Add the shape of one record; forget fields that are no longer needed."""
        at = self.last_at = max(sample.at, self.last_at or sample.at)
        self.fields = {path: self.fields.get(path) or FieldHistory() for path in contract.fields}
        for path, history in self.fields.items():
            history.note(sample.types.get(path, frozenset()), contract.fields[path], at)
        for path in sample.types.keys() - self.fields.keys() - contract.holders:
            self._note_other(path, at)

    def _note_other(self, path: str, at: datetime) -> None:
        if path not in self.others and len(self.others) >= MAX_OTHERS:
            self.others = {
                name: times for name, times in self.others.items() if at - times[1] < FORGET_AFTER
            }
            if len(self.others) >= MAX_OTHERS:
                return
        first, _ = self.others.get(path, (at, at))
        self.others[path] = first, at

    def to_json(self) -> dict[str, Any]:
        """Return the JSON to store; the inverse of `parse`."""
        return {
            "last_at": isoformat_or_none(self.last_at),
            "fields": {path: history.to_json() for path, history in self.fields.items()},
            "others": {
                path: [isoformat(at) for at in times] for path, times in self.others.items()
            },
        }

    @classmethod
    def parse(cls, stored: Mapping[str, Any]) -> Self:
        """Return the history of stored JSON."""
        last, others = stored["last_at"], stored["others"].items()
        return cls(
            last_at=last and datetime.fromisoformat(last),
            fields={path: FieldHistory.parse(one) for path, one in stored["fields"].items()},
            others={path: _parse_times(times) for path, times in others},
        )


def _parse_times(stored: list[str]) -> tuple[datetime, datetime]:
    first, last = stored
    return datetime.fromisoformat(first), datetime.fromisoformat(last)
