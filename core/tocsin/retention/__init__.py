"""Retention: removal of old records, kind by kind."""

from tocsin.retention.growth import OVERDUE, GrowthGauges, find_oldest
from tocsin.retention.incidents import remove_incidents
from tocsin.retention.loop import Retention, RetentionRule, build_retention
from tocsin.retention.records import remove_coverage, remove_documents, remove_edges
from tocsin.retention.sessions import remove_sessions

__all__ = [
    "OVERDUE",
    "GrowthGauges",
    "Retention",
    "RetentionRule",
    "build_retention",
    "find_oldest",
    "remove_coverage",
    "remove_documents",
    "remove_edges",
    "remove_incidents",
    "remove_sessions",
]
