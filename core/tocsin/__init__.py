"""Tocsin: what a plugin author imports."""

from tocsin.clock import Clock
from tocsin.errors import (
    CredentialsRefused,
    Misconfigured,
    OperatorError,
    PluginFailure,
    Refused,
    TocsinError,
    TryLater,
)
from tocsin.fields import Duration, LocalPath, PluginSettings
from tocsin.hookspecs import Channel, HttpClient, HttpResponse, Provider, Tools, hookimpl
from tocsin.model import (
    Alert,
    Covered,
    Delivery,
    Entity,
    EntityKind,
    Event,
    EventType,
    Health,
    Incident,
    IncidentStatus,
    Page,
    Receipt,
    Rejected,
    Severity,
)

__all__ = [
    "Alert",
    "Channel",
    "Clock",
    "Covered",
    "CredentialsRefused",
    "Delivery",
    "Duration",
    "Entity",
    "EntityKind",
    "Event",
    "EventType",
    "Health",
    "HttpClient",
    "HttpResponse",
    "Incident",
    "IncidentStatus",
    "LocalPath",
    "Misconfigured",
    "OperatorError",
    "Page",
    "PluginFailure",
    "PluginSettings",
    "Provider",
    "Receipt",
    "Refused",
    "Rejected",
    "Severity",
    "TocsinError",
    "Tools",
    "TryLater",
    "hookimpl",
]
