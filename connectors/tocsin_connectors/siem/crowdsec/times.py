"""Times and durations as Go writes them."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from tocsin_connectors.siem.records import utc

# https://pkg.go.dev/time#Time.String
_GO_TIME = re.compile(r"([\d-]+) ([\d:.]+) ([+-]\d{4}) \S+(?: m=\S+)?")


def parse_time(text: str) -> datetime:
    """Return the time of `2026-11-20 09:19:51.5 +0000 UTC` or of RFC 3339, in UTC.

    Digits behind the microsecond are dropped. Raises ValueError for anything else.
    """
    return utc(_GO_TIME.sub(r"\1T\2\3", text))


def go_duration(length: timedelta) -> str:
    """Return a length of time as Go's `time.ParseDuration` reads it: `86400.250000s`."""
    return f"{length // timedelta(microseconds=1) / 1e6:.6f}s"
