"""Reading again what was lost: it may be there by now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, RowMapping, Select, and_, or_, select

from tocsin.incidents.backfills.records import BackfillOrigin, BackfillState, create_backfill
from tocsin.incidents.coverage.gaps import Loss, iter_overlaps, list_losses, merge_spans
from tocsin.model import Window
from tocsin.store.tables import backfills

RETRY_WINDOW = timedelta(days=30)
"""What was lost longer ago is not tried again by itself."""
MAX_TRIES = 6
"""What is lost again by each backfill is left to people after so many."""
MAX_WINDOWS = 100
"""So many backfills at most are made at once."""


def find_untried_losses(
    connection: Connection, provider: str, streams: Sequence[str], now: datetime
) -> list[Window]:
    """Return what was lost and not tried again yet, each window as long as it gets."""
    since = now - RETRY_WINDOW
    lost = list_losses(connection, provider, streams, since)
    if not lost:
        return []
    wanted = _filter_untried(
        lost, connection.execute(_select_tries(provider, since)).mappings().all()
    )
    return [Window(start, end) for start, end in merge_spans(wanted)][:MAX_WINDOWS]


def _select_tries(provider: str, since: datetime) -> Select[Any]:
    """Return the query of the backfills that are a try: what people's have not read is none."""
    c = backfills.c
    failed = and_(c.state == BackfillState.FAILED, c.origin == BackfillOrigin.LOST)
    tried = or_(c.state.in_((BackfillState.RUNNING, BackfillState.COMPLETED)), failed)
    return select(c.start, c.end, c.created_at).where(
        c.provider == provider, c.created_at >= since, tried
    )


def _filter_untried(
    lost: Iterable[Loss], tries: Iterable[RowMapping]
) -> Iterator[tuple[datetime, datetime]]:
    """Yield the ends of what lies in no backfill since it was lost, and in few before."""
    stretches = ((it.window.start, it.window.end, it) for it in lost)
    made = ((it["start"], it["end"], it) for it in tries)
    for loss, around in iter_overlaps(stretches, made):
        start, end = loss.window.start, loss.window.end
        tried = [it["created_at"] for it in around if it["start"] <= start and end <= it["end"]]
        if len(tried) < MAX_TRIES and all(moment < loss.lost_at for moment in tried):
            yield start, end


def create_retry_backfills(
    connection: Connection, provider: str, windows: Iterable[Window], now: datetime
) -> None:
    """Make a backfill of each window that was lost."""
    for window in windows:
        create_backfill(
            connection,
            provider,
            window,
            alert=True,
            origin=BackfillOrigin.LOST,
            by="tocsin",
            now=now,
        )
