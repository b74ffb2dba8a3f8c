"""Accounting: what became of one incident, and of everything in a period.

It records nothing: it reads what the others recorded, and says what that does not explain.
"""

from tocsin.accounting.arrivals import OUTCOMES
from tocsin.accounting.followed import MOST_INVESTIGATIONS
from tocsin.accounting.period import LONGEST, MOST, Period
from tocsin.accounting.proof import prove
from tocsin.accounting.tracing import trace
from tocsin.accounting.unexplained import KINDS

__all__ = [
    "KINDS",
    "LONGEST",
    "MOST",
    "MOST_INVESTIGATIONS",
    "OUTCOMES",
    "Period",
    "prove",
    "trace",
]
