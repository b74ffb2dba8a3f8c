"""What Splunk is asked, in SPL.

A value that comes from elsewhere never stands in a search as it is. Splunk itself decodes it
(`urldecode`) out of letters, digits and `%`: nothing is left that would have to be escaped,
whatever quotes, backslashes, pipes, brackets or backticks mean to which command. So that an index
need not be read as a whole, a pattern goes before that, in which all but plain characters are `*`.
It finds the value, and at times others; the comparison behind it lets only the value by.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from tocsin import Refused, Window

INDEXED, REVIEWED, ORIGIN = "tocsin_indexed", "tocsin_reviewed", "tocsin_origin"
"""The fields that these searches add: when it was indexed, when reviewed, which record it is."""
_REVIEWS = "| inputlookup incident_review_lookup where"
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9._:@/-]+")
_AHEAD = timedelta(days=1)  # so far in the future may a clock have put an event


@dataclass(frozen=True, slots=True)
class Search:
    """A search, and the parameters of its job that bound it in time."""

    spl: str
    bounds: Mapping[str, str] = field(default_factory=dict)


def literal(value: str) -> str:
    """Return an expression that comes to a value: `urldecode("ann%40example%2Ecom")`."""
    encoded = "".join(
        chr(byte) if chr(byte).isalnum() and byte < 0x80 else f"%{byte:02X}"  # noqa: PLR2004
        for byte in value.encode("utf-8", "replace")
    )
    return f'urldecode("{encoded}")'


def pattern(value: str) -> str:
    """Return what the command `search` finds a value with, and perhaps others.

    Raises `Refused` for a value without any letter or digit: it would find everything.
    """
    plain = _NOT_PLAIN.sub("*", value)
    if not any(character.isalnum() for character in plain):
        raise Refused(f"{value!r:.60} has no letter or digit that Splunk could look for")
    return f'"{plain}"'


def indexed_within(window: Window, look_back: timedelta) -> Search:
    """Return the search for the findings that were indexed in a window, the oldest first."""
    start, end = _seconds(window.start), _seconds(window.end)
    return Search(
        f"search `notable` | eval {INDEXED}=_indextime"
        f" | where {INDEXED}>={start} AND {INDEXED}<{end}"
        f" | sort 0 {INDEXED} event_id | fields - _raw orig_raw",
        {
            "earliest_time": _seconds(window.start - look_back),
            "latest_time": _seconds(window.end + _AHEAD),
            "index_earliest": start,
            "index_latest": _seconds(window.end + timedelta(seconds=1)),
        },
    )


def reviewed_within(window: Window) -> Search:
    """Return the search for what was reviewed in a window: `rule_id`, and when that was last."""
    start, end = _seconds(window.start), _seconds(window.end)
    return Search(
        f"{_REVIEWS} time>={start} AND time<{end}"
        f" | stats max(time) AS {REVIEWED} BY rule_id | sort 0 {REVIEWED} rule_id"
    )


def findings(identifiers: Sequence[str], earliest: datetime) -> Search:
    """Return the search for findings by their ids, as they are now."""
    wanted = " OR ".join(f"event_id=={literal(it)}" for it in identifiers)
    return Search(
        f"search `notable` | where {wanted} | eval {INDEXED}=_indextime | fields - _raw orig_raw",
        {"earliest_time": _seconds(earliest), "latest_time": "+1d"},
    )


def comments(identifier: str) -> Search:
    """Return the search for what was written when a finding was reviewed."""
    return Search(
        f"{_REVIEWS} rule_id={pattern(identifier)} | where rule_id=={literal(identifier)}"
        " | fields comment"
    )


def events(
    value: str, names: Iterable[str], indexes: Iterable[str], window: Window, limit: int
) -> Search:
    """Return the search for the latest events of a window that have a value in one of some fields.

    Raises `Refused` as `pattern` does.
    """
    names, near = tuple(names), pattern(value)
    places = " OR ".join(f"index={index}" for index in indexes)
    found = " OR ".join(f"{name}={near}" for name in names)
    wanted = literal(value)
    exact = " OR ".join(f"isnotnull(mvfilter(lower({name})==lower({wanted})))" for name in names)
    return Search(
        f"search ({places}) NOT index=notable ({found}) | where {exact} | head {limit}"
        f' | eval {ORIGIN}=_bkt."/"._cd',
        {"earliest_time": _seconds(window.start), "latest_time": _seconds(window.end)},
    )


INDEX_OF_FINDINGS = Search("| eventcount summarize=false index=notable")
"""Finds nothing where the index is not there, or is not this role's to read."""


def _seconds(moment: datetime) -> str:
    return f"{moment.timestamp():.6f}".rstrip("0").rstrip(".")
