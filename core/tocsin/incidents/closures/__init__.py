"""Closures of incidents at their SIEMs, after people closed their tickets."""

from tocsin.incidents.closures.repository import (
    ClosureState,
    count_closures,
    load_closure,
)
from tocsin.incidents.closures.worker import TicketClosures

__all__ = ["ClosureState", "TicketClosures", "count_closures", "load_closure"]
