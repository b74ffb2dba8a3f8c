"""Retries of writes to incidents at their SIEMs."""

from __future__ import annotations

from datetime import timedelta
from typing import NamedTuple

from tocsin.errors import Misconfigured, Refused, TryLater

RETRY_DELAYS = tuple(timedelta(minutes=minutes) for minutes in (1, 10, 60, 360, 1440))
"""Delay after each consecutive failure; after the last one, the write has failed for good."""
MISCONFIGURED_RETRY = timedelta(hours=1)
"""Delay after wrong settings or credentials; frequent attempts could lock the account."""
WRITE_TIMEOUT = timedelta(minutes=2)
LATE_WRITE = "the SIEM did not respond in time"
"""Reason of a write that takes longer than its timeout."""


class WriteRetry(NamedTuple):
    """When a write is tried again, and how often it has failed in a row."""

    delay: timedelta
    failures: int


def plan_retry(error: BaseException, failures: int) -> WriteRetry | None:
    """Return the retry after a failure, None if the write has failed.

    `failures` is the number of consecutive failures before. Wrong settings are not counted.
    """
    if isinstance(error, Misconfigured):
        return WriteRetry(MISCONFIGURED_RETRY, failures)
    if isinstance(error, Refused) or failures >= len(RETRY_DELAYS):
        return None
    delay = RETRY_DELAYS[failures]
    if isinstance(error, TryLater) and error.after is not None:
        delay = max(delay, error.after)
    return WriteRetry(delay, failures + 1)
