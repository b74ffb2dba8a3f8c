"""Reading again what was lost: it may be there by now."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from sqlalchemy import Connection, select

from tocsin.incidents.backfills.records import BackfillState, Origin, create_backfill
from tocsin.incidents.coverage.gaps import Loss, losses
from tocsin.incidents.coverage.positions import StreamKey
from tocsin.model import Window
from tocsin.store.tables import backfills

MEMORY = timedelta(days=30)
"""What was lost longer ago is not tried again by itself."""
MOST_TRIES = 6
"""What is lost again by each backfill is left to people after so many."""
MOST = 100
"""So many backfills at most are made at once."""


def refill(connection: Connection, provider: str, streams: Sequence[str], now: datetime) -> int:
    """Make a backfill for each stretch that was lost and not tried again yet; return how many."""
    keys = [StreamKey(provider, stream) for stream in streams]
    lost = [loss for key in keys for loss in losses(connection, key, now - MEMORY)]
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


def _untried(connection: Connection, provider: str, lost: Iterable[Loss]) -> list[Window]:
    """Return the windows that lie in no backfill since they were lost, and in few before."""
    c = backfills.c
    made = connection.execute(
        select(c.start, c.end, c.created_at).where(
            c.provider == provider, c.state != BackfillState.CANCELLED
        )
    ).all()

    def is_wanted(loss: Loss) -> bool:
        window = loss.window
        tried = [it.created_at for it in made if it.start <= window.start and window.end <= it.end]
        return len(tried) < MOST_TRIES and all(moment < loss.lost_at for moment in tried)

    return list(dict.fromkeys(loss.window for loss in lost if is_wanted(loss)))
