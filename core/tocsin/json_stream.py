"""Parsing of large JSON bodies in batches of their records, with bounds on records and values.

Parsed at once, a body needs up to a hundred times its size in memory: `[{},{},...]`. So a scan of
its brackets, commas and strings finds the records first, and only one batch of them exists at a
time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson

from tocsin.json_codec import parse_json

# Possessive, so that a long string needs no memory for backtracking; a quotation mark by itself
# opens a string that does not end
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|["\[\]{},]', re.DOTALL)
_QUOTE, _COMMA, _LIST = b'",['
_OPENING = frozenset(b"[{")
_ADJACENT_STRINGS = 2  # a name and its value
_MEMBER_DEPTH = 2


@dataclass(frozen=True, slots=True)
class JsonLimits:
    """Bounds on the content of a body."""

    records: int
    """The most records of a body."""
    values: int
    """The most values of a record, and of the rest of the body together."""
    batch_records: int
    """A batch with this number of records is full."""
    batch_values: int
    """A batch with this number of values is full."""


class JsonLimitError(ValueError):
    """A body exceeds a bound."""


class JsonBody:
    """A JSON body, divided into batches of its records.

    `member` names the member that is the list of records; it is empty where the body itself is the
    list, and None where there are no records. A body without that list is one batch.

    Raises ValueError where the content is not JSON, and `JsonLimitError` where it exceeds a bound.
    """

    def __init__(self, content: bytes, member: str | None, limits: JsonLimits) -> None:
        scan = _Scan(content, member, limits)
        self._content = content
        self._member = member
        self._batches = scan.batches
        self.records = sum(batch.records for batch in scan.batches)
        """The number of records."""
        rest = content if scan.end is None else content[: scan.start] + content[scan.end :]
        self._rest = _parse(rest)
        for _ in self._parse_batches():  # nothing is used of a body that is not JSON
            pass

    def batches(self) -> Iterator[Any]:
        """Yield the body once for each batch, with the records of the batch alone."""
        if not self._batches:
            yield self._rest
        for records in self._parse_batches():
            yield {**self._rest, self._member: records} if self._member else records

    def _parse_batches(self) -> Iterator[list[Any]]:
        for batch in self._batches:
            records = _parse(b"[%b]" % self._content[batch.start : batch.end], batch.start)
            if len(records) != batch.records:
                raise ValueError("a comma without a value")
            yield records


def _parse(content: bytes, start: int | None = None) -> Any:
    """Return decoded JSON; the ValueError names the byte of a part that begins at `start`."""
    try:
        return parse_json(content)
    except orjson.JSONDecodeError as error:
        if start is None:
            raise
        raise ValueError(f"{error.msg} near byte {start + error.pos}") from None


@dataclass(slots=True)
class _Batch:
    """Consecutive records of a body, from the first byte up to the comma after the last."""

    start: int
    end: int = 0
    records: int = 1
    values: int = 0


@dataclass(slots=True)
class _Scan:
    """The places of the records in a body."""

    content: bytes
    member: str | None
    limits: JsonLimits
    start: int = 0
    """The first byte of the list, after its bracket."""
    end: int | None = None
    """The bracket that ends the list, or None if there is none."""
    batches: list[_Batch] = field(default_factory=list)
    _records: int = 1

    _list_depth: int | None = None
    """The depth of the list of records, while inside it."""
    _values: int = 1
    """The number of values in the record, or in the rest."""
    _rest_values: int = 0

    def __post_init__(self) -> None:
        content = self.content
        depth = strings = 0
        string: re.Match[bytes] | None = None
        for token in _TOKEN.finditer(content):
            place = token.start()
            character = content[place]
            if character == _QUOTE:
                strings += 1
                if token.end() == place + 1 or strings > _ADJACENT_STRINGS:
                    raise ValueError(f"unexpected quotation mark near byte {place}")
                string = token
                continue
            if character == _COMMA:
                if depth == self._list_depth:
                    self._end_record(place)
                self._values += 1
            elif character in _OPENING:
                depth += 1
                self._values += 1
                if character == _LIST and self._is_list_of_records(depth, string):
                    self._begin_list(place + 1, depth)
            else:
                if depth == self._list_depth:
                    self._end_list(place)
                depth -= 1
            string, strings = None, 0
            if self._values > self.limits.values:
                inside = self._list_depth is not None
                where = f"in record {self._records}" if inside else "outside of its records"
                raise JsonLimitError(f"it has more than {self.limits.values:,} values {where}")

    def _is_list_of_records(self, depth: int, string: re.Match[bytes] | None) -> bool:
        """Whether a list at this depth, right after this string, is that of the records."""
        if self._list_depth is not None or self.member is None:
            return False
        if not self.member:
            return depth == 1
        if depth != _MEMBER_DEPTH or string is None:
            return False
        return string[0] == b'"%b"' % self.member.encode()

    def _begin_list(self, place: int, depth: int) -> None:
        if self.end is not None:
            raise ValueError(f"the member {self.member!r} occurs twice")
        self.start = place
        self.batches.append(_Batch(place))
        self._list_depth, self._rest_values, self._values = depth, self._values, 1

    def _end_record(self, place: int) -> None:
        if self._records >= self.limits.records:
            raise JsonLimitError(f"it has more than {self.limits.records:,} records")
        self._records += 1
        batch = self._extend_batch(place)
        limits = self.limits
        if batch.records >= limits.batch_records or batch.values >= limits.batch_values:
            self.batches.append(_Batch(place + 1))
        else:
            batch.records += 1
        self._values = 0

    def _end_list(self, place: int) -> None:
        self.end = place
        self._extend_batch(place)
        if len(self.batches) == 1 and not self.content[self.start : place].strip():
            self.batches.clear()
        self._list_depth, self._values = None, self._rest_values

    def _extend_batch(self, place: int) -> _Batch:
        batch = self.batches[-1]
        batch.end = place
        batch.values += self._values
        return batch
