"""Accounting for one incident, or for everything that happened in a period.

This package does not record anything. It reads the records of other packages, and reports what
these records do not explain.
"""

from tocsin.accounting.anomalies import ANOMALY_KINDS
from tocsin.accounting.delivery_outcomes import EVENT_OUTCOMES
from tocsin.accounting.event_trace import MAX_CHANGES
from tocsin.accounting.head_report import load_rollbacks, report_head
from tocsin.accounting.incident_trace import MAX_INVESTIGATIONS, trace_incident
from tocsin.accounting.intervals import LONGEST_PERIOD, MAX_LISTED, Period
from tocsin.accounting.period_report import report_period

__all__ = [
    "ANOMALY_KINDS",
    "EVENT_OUTCOMES",
    "LONGEST_PERIOD",
    "MAX_CHANGES",
    "MAX_INVESTIGATIONS",
    "MAX_LISTED",
    "Period",
    "load_rollbacks",
    "report_head",
    "report_period",
    "trace_incident",
]
