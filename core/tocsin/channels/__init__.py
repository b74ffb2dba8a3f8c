"""Base classes for channels that keep objects in their receiver.

The classes are independent of vendors, and `tocsin` exports them to plugins.
"""

from tocsin.channels.event_fields import Observable
from tocsin.channels.object_updates import list_updated_objects
from tocsin.channels.remote_objects import CaseChannel, ObjectChannel
from tocsin.channels.status_settings import (
    Resolutions,
    StatusInterval,
    WebhookSecret,
    find_unmapped,
    require_status_interval,
)
from tocsin.channels.tickets import Ticket, TicketSettings, Tracker
from tocsin.channels.webhooks import parse_webhook_body, require_webhook_token

__all__ = [
    "CaseChannel",
    "ObjectChannel",
    "Observable",
    "Resolutions",
    "StatusInterval",
    "Ticket",
    "TicketSettings",
    "Tracker",
    "WebhookSecret",
    "find_unmapped",
    "list_updated_objects",
    "parse_webhook_body",
    "require_status_interval",
    "require_webhook_token",
]
