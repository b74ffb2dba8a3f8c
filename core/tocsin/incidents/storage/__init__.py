"""Incident storage: normalization, version merging, alerts; one transaction per page."""

from tocsin.incidents.storage.alerts import AlertDecision, IncidentPolicy
from tocsin.incidents.storage.followed_changes import emit_triage_change
from tocsin.incidents.storage.merge import EntityRole, RemovedIncident, combine_versions
from tocsin.incidents.storage.normalize import identify, reject_invalid
from tocsin.incidents.storage.refreshes import (
    DueRefresh,
    complete_refresh,
    load_due_refreshes,
    postpone_refresh,
)
from tocsin.incidents.storage.removed import digest_identity, find_removed
from tocsin.incidents.storage.store import (
    StoreResult,
    count_unknown,
    lock_incidents,
    store_batch,
    store_page,
    store_received,
)

__all__ = [
    "AlertDecision",
    "DueRefresh",
    "EntityRole",
    "IncidentPolicy",
    "RemovedIncident",
    "StoreResult",
    "combine_versions",
    "complete_refresh",
    "count_unknown",
    "digest_identity",
    "emit_triage_change",
    "find_removed",
    "identify",
    "load_due_refreshes",
    "lock_incidents",
    "postpone_refresh",
    "reject_invalid",
    "store_batch",
    "store_page",
    "store_received",
]
