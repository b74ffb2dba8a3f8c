"""Backfills: reads of past intervals, stored as jobs in the database."""

from tocsin.incidents.backfills.records import (
    BACKFILLS,
    BackfillOrigin,
    BackfillPage,
    BackfillState,
    create_backfill,
    end_backfill,
    list_backfills,
    load_backfill,
)
from tocsin.incidents.backfills.runner import (
    BackfillRunner,
    create_retry_backfills,
    find_untried_losses,
)

__all__ = [
    "BACKFILLS",
    "BackfillOrigin",
    "BackfillPage",
    "BackfillRunner",
    "BackfillState",
    "create_backfill",
    "create_retry_backfills",
    "end_backfill",
    "find_untried_losses",
    "list_backfills",
    "load_backfill",
]
