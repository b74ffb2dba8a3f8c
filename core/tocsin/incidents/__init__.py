"""Incidents: reading them from providers, keeping them, and accounting for what was read."""

from tocsin.incidents.coverage.listing import list_coverage, list_quarantine
from tocsin.incidents.reads import IncidentPage, get_incident, list_incidents
from tocsin.incidents.syncing.provider import ProviderSync

__all__ = [
    "IncidentPage",
    "ProviderSync",
    "get_incident",
    "list_coverage",
    "list_incidents",
    "list_quarantine",
]
