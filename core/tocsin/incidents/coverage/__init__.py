"""Coverage of each stream: its position, the ledger of intervals, losses."""

from tocsin.incidents.coverage.ledger import (
    BYTES,
    EXTENSION,
    ROW_SPAN,
    CoverageOutcome,
    CoverageRecord,
    ReadCounts,
    ReadFailure,
    list_coverage,
    record_coverage,
    record_failure,
    represent_point,
)
from tocsin.incidents.coverage.losses import (
    Loss,
    iter_overlaps,
    iter_still_lost,
    list_losses,
    merge_spans,
)
from tocsin.incidents.coverage.positions import (
    StalePosition,
    StreamKey,
    StreamPosition,
    advance_position,
    load_covered_until,
    load_position,
    load_read_until,
    mark_first_read_done,
)
from tocsin.incidents.coverage.quarantine import (
    QuarantinePage,
    list_quarantine,
    load_quarantined,
    quarantine_rejected,
)

__all__ = [
    "BYTES",
    "EXTENSION",
    "ROW_SPAN",
    "CoverageOutcome",
    "CoverageRecord",
    "Loss",
    "QuarantinePage",
    "ReadCounts",
    "ReadFailure",
    "StalePosition",
    "StreamKey",
    "StreamPosition",
    "advance_position",
    "iter_overlaps",
    "iter_still_lost",
    "list_coverage",
    "list_losses",
    "list_quarantine",
    "load_covered_until",
    "load_position",
    "load_quarantined",
    "load_read_until",
    "mark_first_read_done",
    "merge_spans",
    "quarantine_rejected",
    "record_coverage",
    "record_failure",
    "represent_point",
]
