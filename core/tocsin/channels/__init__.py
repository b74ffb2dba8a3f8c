"""What channels are made of that keep an object at their receiver.

Nothing here knows a vendor; `tocsin` hands it all out.
"""

from tocsin.channels.cases import CaseChannel
from tocsin.channels.event_fields import Observable
from tocsin.channels.tickets import Ticket, TicketSettings, Tracker

__all__ = ["CaseChannel", "Observable", "Ticket", "TicketSettings", "Tracker"]
