"""Retention: removal of old records, kind by kind."""

from tocsin.retention.growth import OVERDUE, GrowthGauges, find_oldest
from tocsin.retention.incidents import remove_incidents
from tocsin.retention.loop import Retention, RetentionRule, build_retention
from tocsin.retention.partitions import (
    MONTHS_AHEAD,
    find_partition_problems,
    list_latest_removals,
)
from tocsin.retention.records import remove_coverage, remove_documents, remove_edges
from tocsin.retention.sessions import remove_sessions

__all__ = [
    "MONTHS_AHEAD",
    "OVERDUE",
    "GrowthGauges",
    "Retention",
    "RetentionRule",
    "build_retention",
    "find_oldest",
    "find_partition_problems",
    "list_latest_removals",
    "remove_coverage",
    "remove_documents",
    "remove_edges",
    "remove_incidents",
    "remove_sessions",
]
