"""Base classes for channels that keep an object at their receiver.

They are independent of vendors; `tocsin` exports them to plugins.
"""

from tocsin.channels.cases import CaseChannel
from tocsin.channels.event_fields import Observable
from tocsin.channels.tickets import Ticket, TicketSettings, Tracker

__all__ = ["CaseChannel", "Observable", "Ticket", "TicketSettings", "Tracker"]
