"""Accounting: what became of one incident, and of everything in a period.

It records nothing: it reads what the others recorded, and says what that does not explain.
"""

from tocsin.accounting.arrivals import EVENT_OUTCOMES
from tocsin.accounting.followed import MAX_INVESTIGATIONS
from tocsin.accounting.period import LONGEST_PERIOD, MAX_LISTED, Period
from tocsin.accounting.proof import report_period
from tocsin.accounting.tracing import trace_incident
from tocsin.accounting.unexplained import ANOMALY_KINDS

__all__ = [
    "ANOMALY_KINDS",
    "EVENT_OUTCOMES",
    "LONGEST_PERIOD",
    "MAX_INVESTIGATIONS",
    "MAX_LISTED",
    "Period",
    "report_period",
    "trace_incident",
]
