"""Reading again what was lost: it may be there by now."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from sqlalchemy import Connection, select

from tocsin.incidents.backfills.records import BackfillState, Origin, create_backfill
from tocsin.incidents.coverage.gaps import lost_windows
from tocsin.incidents.coverage.positions import StreamKey
from tocsin.model import Window
from tocsin.store.tables import backfills

MEMORY = timedelta(days=30)
"""What was lost longer ago is not tried again by itself."""
MOST = 100
"""So many backfills at most are made at once."""


def refill(connection: Connection, provider: str, streams: Sequence[str], now: datetime) -> int:
    """Make a backfill for each stretch that was lost and not tried again yet; return how many."""
    keys = [StreamKey(provider, stream) for stream in streams]
    lost = [window for key in keys for window in lost_windows(connection, key, now - MEMORY)]
    wanted = _untried(connection, provider, lost)[:MOST]
    for window in wanted:
        create_backfill(
            connection,
            provider,
            window,
            alert=True,
            origin=Origin.LOST,
            by="tocsin",
            now=now,
        )
    return len(wanted)


def _untried(connection: Connection, provider: str, windows: Iterable[Window]) -> list[Window]:
    """Return the windows that lie in no backfill, be it one that failed."""
    tried = connection.execute(
        select(backfills.c.start, backfills.c.end).where(
            backfills.c.provider == provider, backfills.c.state != BackfillState.CANCELLED
        )
    ).all()
    return [
        window
        for window in dict.fromkeys(windows)
        if not any(start <= window.start and window.end <= end for start, end in tried)
    ]
