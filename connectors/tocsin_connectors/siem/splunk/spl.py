"""Searches in SPL.

A search never contains a value from outside unchanged. The value is written as letters, digits and
`%`, and Splunk decodes it (`urldecode`). Therefore, nothing needs escaping, whatever quotes,
backslashes, pipes, brackets or backticks mean to a command. To avoid reading a whole index, the
exact comparison follows a pattern in which all characters except plain ones are `*`. The pattern
finds the value and sometimes other values, and the comparison keeps only the value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from tocsin import Refused, Window

INDEXED, REVIEWED, ORIGIN = "tocsin_indexed", "tocsin_reviewed", "tocsin_origin"
"""Fields that these searches add: index time, review time, record ID."""
_REVIEWS = "| inputlookup incident_review_lookup where"
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9._:@/-]+")
_CLOCK_TOLERANCE = timedelta(days=1)  # tolerance for clocks that are ahead


@dataclass(frozen=True, slots=True)
class SplSearch:
    """A search and the time bounds of its job."""

    spl: str
    bounds: Mapping[str, str] = field(default_factory=dict)


def quote_value(value: str) -> str:
    """Return an expression for a value: `urldecode("ann%40example%2Ecom")`."""
    encoded = "".join(
        chr(byte) if chr(byte).isalnum() and byte < 0x80 else f"%{byte:02X}"  # noqa: PLR2004
        for byte in value.encode("utf-8", "replace")
    )
    return f'urldecode("{encoded}")'


def build_pattern(value: str) -> str:
    """Return the pattern with which `search` finds a value, and perhaps others.

    Raises `Refused` for a value without any letter or digit, which would match everything.
    """
    plain = _NOT_PLAIN.sub("*", value)
    if not any(character.isalnum() for character in plain):
        raise Refused(f"{value!r:.60} has no letter or digit that Splunk can search for")
    return f'"{plain}"'


def build_indexed_search(window: Window, look_back: timedelta) -> SplSearch:
    """Return the search for findings indexed in a window, oldest first."""
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
    """Return the search for reviews in a window: `rule_id` and the last review time."""
    start, end = _format_seconds(window.start), _format_seconds(window.end)
    return SplSearch(
        f"{_REVIEWS} time>={start} AND time<{end}"
        f" | stats max(time) AS {REVIEWED} BY rule_id | sort 0 {REVIEWED} rule_id"
    )


def build_findings_search(identifiers: Sequence[str], earliest: datetime) -> SplSearch:
    """Return the search for the current findings with these IDs."""
    wanted = " OR ".join(f"event_id=={quote_value(identifier)}" for identifier in identifiers)
    return SplSearch(
        f"search `notable` | where {wanted} | eval {INDEXED}=_indextime | fields - _raw orig_raw",
        {"earliest_time": _format_seconds(earliest), "latest_time": "+1d"},
    )


def build_comments_search(identifier: str) -> SplSearch:
    """Return the search for the comments on a finding."""
    return SplSearch(
        f"{_REVIEWS} rule_id={build_pattern(identifier)} | where rule_id=={quote_value(identifier)}"
        " | fields comment"
    )


def build_events_search(
    value: str, names: Iterable[str], indexes: Iterable[str], window: Window, limit: int
) -> SplSearch:
    """Return the search for the latest events of a window with a value in one of several fields.

    Raises `Refused` as `build_pattern` does.
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
"""Finds nothing if the index does not exist or the role cannot read it."""


def _format_seconds(moment: datetime) -> str:
    return f"{moment.timestamp():.6f}".rstrip("0").rstrip(".")
