"""Runs of investigations: each by one node at a time, under a lease."""

from tocsin.investigations.runs.compaction import LedgerCompaction
from tocsin.investigations.runs.completion import FailureCause, FinishedRun, Finisher, RunFailure
from tocsin.investigations.runs.finishers import build_change_finisher, build_write_back_finisher
from tocsin.investigations.runs.worker import InvestigationWorker

__all__ = [
    "FailureCause",
    "FinishedRun",
    "Finisher",
    "InvestigationWorker",
    "LedgerCompaction",
    "RunFailure",
    "build_change_finisher",
    "build_write_back_finisher",
]
