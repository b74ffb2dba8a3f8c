"""Incidents: reading them from providers, keeping them, and accounting for what was read."""

from tocsin.incidents.backfills.records import (
    BACKFILLS,
    BackfillPage,
    BackfillState,
    Origin,
    create_backfill,
    end_backfill,
    list_backfills,
    load_backfill,
)
from tocsin.incidents.coverage.listing import list_coverage, list_quarantine
from tocsin.incidents.coverage.positions import read_until
from tocsin.incidents.inbox import Inbox
from tocsin.incidents.measuring import SyncMeters
from tocsin.incidents.reads import IncidentPage, get_incident, list_incidents
from tocsin.incidents.sync import ProviderSync
from tocsin.incidents.syncing.listing import STATES, ProviderFacts, facts_of, list_providers
from tocsin.incidents.syncing.writing import Surroundings

__all__ = [
    "BACKFILLS",
    "STATES",
    "BackfillPage",
    "BackfillState",
    "Inbox",
    "IncidentPage",
    "Origin",
    "ProviderFacts",
    "ProviderSync",
    "Surroundings",
    "SyncMeters",
    "create_backfill",
    "end_backfill",
    "facts_of",
    "get_incident",
    "list_backfills",
    "list_coverage",
    "list_incidents",
    "list_providers",
    "list_quarantine",
    "load_backfill",
    "read_until",
]
