"""Incidents: reading them from providers, keeping them, and accounting for what was read."""

from tocsin.incidents.backfills.records import (
    BACKFILLS,
    BackfillOrigin,
    BackfillPage,
    BackfillState,
    create_backfill,
    end_backfill,
    list_backfills,
    load_backfill,
)
from tocsin.incidents.coverage.ledger import list_coverage, list_quarantine
from tocsin.incidents.coverage.positions import load_read_until
from tocsin.incidents.inbox import PushInbox
from tocsin.incidents.metrics import SyncMeters
from tocsin.incidents.queries import IncidentPage, get_incident, list_incidents
from tocsin.incidents.sync.loop import ProviderSync
from tocsin.incidents.sync.status import (
    PROVIDER_STATES,
    ProviderFacts,
    describe_providers,
    list_providers,
)
from tocsin.incidents.writer import SyncContext

__all__ = [
    "BACKFILLS",
    "PROVIDER_STATES",
    "BackfillOrigin",
    "BackfillPage",
    "BackfillState",
    "IncidentPage",
    "ProviderFacts",
    "ProviderSync",
    "PushInbox",
    "SyncContext",
    "SyncMeters",
    "create_backfill",
    "describe_providers",
    "end_backfill",
    "get_incident",
    "list_backfills",
    "list_coverage",
    "list_incidents",
    "list_providers",
    "list_quarantine",
    "load_backfill",
    "load_read_until",
]
