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
_CLOCK_TOLERANCE = timedelta(days=1)  # so far in the future may a clock have put an event


@dataclass(frozen=True, slots=True)
class SplSearch:
    """A search, and the parameters of its job that bound it in time."""

    spl: str
    bounds: Mapping[str, str] = field(default_factory=dict)


def quote_value(value: str) -> str:
    """Return an expression that comes to a value: `urldecode("ann%40example%2Ecom")`."""
    encoded = "".join(
        chr(byte) if chr(byte).isalnum() and byte < 0x80 else f"%{byte:02X}"  # noqa: PLR2004
        for byte in value.encode("utf-8", "replace")
    )
    return f'urldecode("{encoded}")'


def build_pattern(value: str) -> str:
    """Return what the command `search` finds a value with, and perhaps others.

    Raises `Refused` for a value without any letter or digit: it would find everything.
    """
    plain = _NOT_PLAIN.sub("*", value)
    if not any(character.isalnum() for character in plain):
        raise Refused(f"{value!r:.60} has no letter or digit that Splunk could look for")
    return f'"{plain}"'


def build_indexed_search(window: Window, look_back: timedelta) -> SplSearch:
    """Return the search for the findings that were indexed in a window, the oldest first."""
    start, end = _format_seconds(window.start), _format_seconds(window.end)
    return SplSearch(
        f"search `notable` | eval {INDEXED}=_indextime"
        f" | where {INDEXED}>={start} AND {INDEXED}<{end}"
        f" | sort 0 {INDEXED} event_id | fields - _raw orig_raw",
        {
            "earliest_time": _format_seconds(window.start - look_back),
            "latest_time": _format_seconds(window.end + _CLOCK_TOLERANCE),
            "index_earliest": start,
            "index_latest": _format_seconds(window.end + timedelta(seconds=1)),
        },
    )


def build_reviewed_search(window: Window) -> SplSearch:
    """Return the search for what was reviewed in a window: `rule_id`, and when that was last."""
    start, end = _format_seconds(window.start), _format_seconds(window.end)
    return SplSearch(
        f"{_REVIEWS} time>={start} AND time<{end}"
        f" | stats max(time) AS {REVIEWED} BY rule_id | sort 0 {REVIEWED} rule_id"
    )


def build_findings_search(identifiers: Sequence[str], earliest: datetime) -> SplSearch:
    """Return the search for findings by their ids, as they are now."""
    wanted = " OR ".join(f"event_id=={quote_value(identifier)}" for identifier in identifiers)
    return SplSearch(
        f"search `notable` | where {wanted} | eval {INDEXED}=_indextime | fields - _raw orig_raw",
        {"earliest_time": _format_seconds(earliest), "latest_time": "+1d"},
    )


def build_comments_search(identifier: str) -> SplSearch:
    """Return the search for what was written when a finding was reviewed."""
    return SplSearch(
        f"{_REVIEWS} rule_id={build_pattern(identifier)} | where rule_id=={quote_value(identifier)}"
        " | fields comment"
    )


def build_events_search(
    value: str, names: Iterable[str], indexes: Iterable[str], window: Window, limit: int
) -> SplSearch:
    """Return the search for the latest events of a window that have a value in one of some fields.

    Raises `Refused` as `pattern` does.
    """
    names, near = tuple(names), build_pattern(value)
    places = " OR ".join(f"index={index}" for index in indexes)
    found = " OR ".join(f"{name}={near}" for name in names)
    wanted = quote_value(value)
    exact = " OR ".join(f"isnotnull(mvfilter(lower({name})==lower({wanted})))" for name in names)
    return SplSearch(
        f"search ({places}) NOT index=notable ({found}) | where {exact} | head {limit}"
        f' | eval {ORIGIN}=_bkt."/"._cd',
        {
            "earliest_time": _format_seconds(window.start),
            "latest_time": _format_seconds(window.end),
        },
    )


FINDINGS_INDEX_SEARCH = SplSearch("| eventcount summarize=false index=notable")
"""Finds nothing where the index is not there, or is not this role's to read."""


def _format_seconds(moment: datetime) -> str:
    return f"{moment.timestamp():.6f}".rstrip("0").rstrip(".")
