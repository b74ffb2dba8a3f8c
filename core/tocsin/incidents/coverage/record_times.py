"""Times in the content of quarantined records."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime

_NAMES = (
    *("@timestamp", "timestamp", "eventTime", "event_time", "time", "ts", "created_at"),
    *("createdAt", "createdDateTime", "occurred_at"),
)
"""Names of the members that say when something happened, the most usual first."""
_MEMBER = re.compile(
    rb'"(%b)"\s*:\s*(?:"([^"\\]{1,40})"|(\d{9,19}(?:\.\d+)?))'
    % b"|".join(re.escape(name).encode() for name in _NAMES)
)
_MILLISECONDS = 1e11
"""Numbers above this one are milliseconds; as seconds, they would be after the year 5000."""
_MICROSECONDS = 1e14
_NANOSECONDS = 1e17


def find_record_time(content: bytes, before: datetime) -> datetime | None:
    """Return the time of a JSON record, whole or cut off; None if it has none up to `before`."""
    return min(_find_times(content, before), default=(0, None), key=lambda found: found[0])[1]


def _find_times(content: bytes, before: datetime) -> Iterator[tuple[int, datetime]]:
    """Yield valid times with the rank of the member's name."""
    for name, text, number in _MEMBER.findall(content):
        moment = _parse_text(text.decode("utf-8", "replace")) if text else _parse_number(number)
        if moment is not None and datetime(2000, 1, 1, tzinfo=UTC) <= moment <= before:
            yield _NAMES.index(name.decode()), moment


def _parse_text(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None


def _parse_number(number: bytes) -> datetime | None:
    value = float(number)
    for limit, unit in ((_NANOSECONDS, 1e9), (_MICROSECONDS, 1e6), (_MILLISECONDS, 1e3)):
        if value >= limit:
            value /= unit
            break
    try:
        return datetime.fromtimestamp(value, UTC)
    except (OverflowError, ValueError, OSError):
        return None
