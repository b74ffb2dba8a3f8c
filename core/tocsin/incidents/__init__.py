"""Incidents: sync from providers, storage, coverage, backfills."""

from tocsin.incidents.backfills import (
    BACKFILLS,
    BackfillOrigin,
    BackfillPage,
    BackfillState,
    create_backfill,
    end_backfill,
    list_backfills,
    load_backfill,
)
from tocsin.incidents.coverage import (
    BYTES,
    ROW_SPAN,
    CoverageOutcome,
    ReadCounts,
    StreamKey,
    iter_still_lost,
    list_coverage,
    list_quarantine,
    load_read_until,
    represent_point,
)
from tocsin.incidents.documents import (
    DOCUMENT_COLUMNS,
    DOCUMENT_VERSION,
    HAS_NUMBER,
    DocumentRebuild,
    complete_document,
    render_document,
    restart_documents,
    store_documents,
)
from tocsin.incidents.drift import DriftGauges, load_drift
from tocsin.incidents.fast_list_pages import (
    DocumentPage,
    DocumentPageQuery,
    load_document_page,
)
from tocsin.incidents.inbox import PUSH_STREAM, PushInbox
from tocsin.incidents.list_pages import IncidentPage, find_incident, list_incidents
from tocsin.incidents.metrics import SyncMeters
from tocsin.incidents.refused_pushes import PushRefusal
from tocsin.incidents.storage import (
    AlertDecision,
    EntityRole,
    RemovedIncident,
    combine_versions,
    digest_identity,
    find_removed,
)
from tocsin.incidents.sync import (
    PROVIDER_STATES,
    ProviderFacts,
    ProviderSync,
    describe_providers,
    list_providers,
)
from tocsin.incidents.writer import SyncContext

__all__ = [
    "BACKFILLS",
    "BYTES",
    "DOCUMENT_COLUMNS",
    "DOCUMENT_VERSION",
    "HAS_NUMBER",
    "PROVIDER_STATES",
    "PUSH_STREAM",
    "ROW_SPAN",
    "AlertDecision",
    "BackfillOrigin",
    "BackfillPage",
    "BackfillState",
    "CoverageOutcome",
    "DocumentPage",
    "DocumentPageQuery",
    "DocumentRebuild",
    "DriftGauges",
    "EntityRole",
    "IncidentPage",
    "ProviderFacts",
    "ProviderSync",
    "PushInbox",
    "PushRefusal",
    "ReadCounts",
    "RemovedIncident",
    "StreamKey",
    "SyncContext",
    "SyncMeters",
    "combine_versions",
    "complete_document",
    "create_backfill",
    "describe_providers",
    "digest_identity",
    "end_backfill",
    "find_incident",
    "find_removed",
    "iter_still_lost",
    "list_backfills",
    "list_coverage",
    "list_incidents",
    "list_providers",
    "list_quarantine",
    "load_backfill",
    "load_document_page",
    "load_drift",
    "load_read_until",
    "render_document",
    "represent_point",
    "restart_documents",
    "store_documents",
]
