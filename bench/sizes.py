"""Sizes of the histories to measure, a tenth with `--quick`."""

from __future__ import annotations

import sys

QUICK = "--quick"
_SHARE = 10


def choose_size(size: int) -> int:
    """Return the number of records to measure with."""
    return size // _SHARE if QUICK in sys.argv else size
