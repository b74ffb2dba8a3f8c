"""What channels are made of that keep an object at their receiver.

Nothing here knows a vendor; `tocsin` hands it all out.
"""

from tocsin.channels.cases import CaseChannel
from tocsin.channels.tickets import Ticket, TicketSettings, Tracker
from tocsin.channels.told import Observable

__all__ = ["CaseChannel", "Observable", "Ticket", "TicketSettings", "Tracker"]
