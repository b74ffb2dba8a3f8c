"""Pauses between the reads of a provider, longer after failures and where the SIEM asks for it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from tocsin.errors import CredentialsRefused, TryLater

LONGEST_PAUSE = timedelta(minutes=15)
MAX_MISSED_POLLS = 20
"""The longest pause of a failing provider, in polls, unless the duration above is shorter."""
FIRST_AFTER_REFUSED = timedelta(minutes=1)
LONGEST_AFTER_REFUSED = timedelta(hours=1)
"""Repeated refusals of credentials lock accounts out."""
_MOST_DOUBLINGS = 16


def compute_pause(
    errors: Sequence[BaseException], failures: int, poll: timedelta, *, jitter: float = 0.0
) -> timedelta:
    """Return the pause after a round with these errors, the `failures`-th consecutive failure.

    The pause doubles with each failure up to a limit, is never shorter than the poll interval or
    the delay that the SIEM asked for, and grows by up to a quarter with a `jitter` from 0 to 1, so
    that providers do not all return at once.
    """
    if not errors:
        return poll
    first, longest = poll, max(poll, min(poll * MAX_MISSED_POLLS, LONGEST_PAUSE))
    if any(isinstance(error, CredentialsRefused) for error in errors):
        first, longest = max(poll, FIRST_AFTER_REFUSED), max(poll, LONGEST_AFTER_REFUSED)
    asked = [error.after for error in errors if isinstance(error, TryLater) and error.after]
    doubled: timedelta = min(first * 2 ** min(failures, _MOST_DOUBLINGS), longest)
    return max(doubled * (1 + jitter / 4), *asked, poll)
