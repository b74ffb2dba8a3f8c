"""Incidents: sync from providers, storage, coverage, backfills."""

from tocsin.incidents.alert_list import AlertPage, AlertPosition, list_alerts
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
from tocsin.incidents.closures import (
    ClosureState,
    TicketClosures,
    count_closures,
    load_closure,
)
from tocsin.incidents.comments import MAX_COMMENTS, CommentPage, add_comment, list_comments
from tocsin.incidents.coverage import (
    BYTES,
    PUSH_STREAM,
    ROW_SPAN,
    CoverageOutcome,
    ReadCounts,
    StreamKey,
    iter_still_lost,
    list_coverage,
    list_quarantine,
    load_quarantined,
    load_quarantined_row,
    load_read_until,
    represent_point,
)
from tocsin.incidents.detections import Detection, rank_detections
from tocsin.incidents.documents import (
    DOCUMENT_COLUMNS,
    DOCUMENT_VERSION,
    HAS_NUMBER,
    DocumentRebuild,
    complete_document,
    refresh_documents,
    restart_documents,
)
from tocsin.incidents.drift import DriftGauges, load_drift
from tocsin.incidents.fast_list_pages import (
    DocumentPage,
    DocumentPageQuery,
    load_document_page,
)
from tocsin.incidents.filters import IncidentFilter
from tocsin.incidents.inbox import PushInbox, PushResult
from tocsin.incidents.intake import LOST_PUSHES, IntakeBacklog, list_backlogs
from tocsin.incidents.list_pages import (
    IncidentOrder,
    IncidentPage,
    find_incident,
    list_incidents,
)
from tocsin.incidents.metrics import SyncMeters
from tocsin.incidents.push_retries import MappedPush, RetryRefusedError, store_retry
from tocsin.incidents.refused_pushes import PushRefusal
from tocsin.incidents.resolutions import apply_resolution
from tocsin.incidents.siem_writes import (
    LATE_WRITE,
    MISCONFIGURED_RETRY,
    RETRY_DELAYS,
    WRITE_TIMEOUT,
    plan_retry,
)
from tocsin.incidents.storage import (
    AlertDecision,
    EntityRole,
    RemovedIncident,
    combine_versions,
    digest_identity,
    find_removed,
    lock_incidents,
)
from tocsin.incidents.sync import (
    PROVIDER_STATES,
    ProviderFacts,
    ProviderSync,
    describe_providers,
    list_providers,
)
from tocsin.incidents.trend import HourlyCount, count_by_hour
from tocsin.incidents.triage import (
    UNTRIAGED,
    LabelKind,
    TriageFilter,
)
from tocsin.incidents.triage_changes import (
    KEEP,
    MAX_HISTORY,
    MAX_LABELS,
    Author,
    TriageUpdate,
    describe_change,
    load_history,
    lock_incident,
    update_triage,
)
from tocsin.incidents.writer import SyncContext

__all__ = [
    "BACKFILLS",
    "BYTES",
    "DOCUMENT_COLUMNS",
    "DOCUMENT_VERSION",
    "HAS_NUMBER",
    "KEEP",
    "LATE_WRITE",
    "LOST_PUSHES",
    "MAX_COMMENTS",
    "MAX_HISTORY",
    "MAX_LABELS",
    "MISCONFIGURED_RETRY",
    "PROVIDER_STATES",
    "PUSH_STREAM",
    "RETRY_DELAYS",
    "ROW_SPAN",
    "UNTRIAGED",
    "WRITE_TIMEOUT",
    "AlertDecision",
    "AlertPage",
    "AlertPosition",
    "Author",
    "BackfillOrigin",
    "BackfillPage",
    "BackfillState",
    "ClosureState",
    "CommentPage",
    "CoverageOutcome",
    "Detection",
    "DocumentPage",
    "DocumentPageQuery",
    "DocumentRebuild",
    "DriftGauges",
    "EntityRole",
    "HourlyCount",
    "IncidentFilter",
    "IncidentOrder",
    "IncidentPage",
    "IntakeBacklog",
    "LabelKind",
    "MappedPush",
    "ProviderFacts",
    "ProviderSync",
    "PushInbox",
    "PushRefusal",
    "PushResult",
    "ReadCounts",
    "RemovedIncident",
    "RetryRefusedError",
    "StreamKey",
    "SyncContext",
    "SyncMeters",
    "TicketClosures",
    "TriageFilter",
    "TriageUpdate",
    "add_comment",
    "apply_resolution",
    "combine_versions",
    "complete_document",
    "count_by_hour",
    "count_closures",
    "create_backfill",
    "describe_change",
    "describe_providers",
    "digest_identity",
    "end_backfill",
    "find_incident",
    "find_removed",
    "iter_still_lost",
    "list_alerts",
    "list_backfills",
    "list_backlogs",
    "list_comments",
    "list_coverage",
    "list_incidents",
    "list_providers",
    "list_quarantine",
    "load_backfill",
    "load_closure",
    "load_document_page",
    "load_drift",
    "load_history",
    "load_quarantined",
    "load_quarantined_row",
    "load_read_until",
    "lock_incident",
    "lock_incidents",
    "plan_retry",
    "rank_detections",
    "refresh_documents",
    "represent_point",
    "restart_documents",
    "store_retry",
    "update_triage",
]
