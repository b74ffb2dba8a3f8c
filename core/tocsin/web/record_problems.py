"""Problems specific to resources: missing records, unsuitable states, exhausted capacity."""

from __future__ import annotations

from tocsin.errors import ConflictError, InvalidInputError
from tocsin.incidents import MAX_COMMENTS
from tocsin.investigations import SessionBusyError
from tocsin.model import SessionStatus
from tocsin.schedules import ScheduleDeletedError, ScheduleNotStartedError
from tocsin.web.problems import (
    PATH_NOT_FOUND,
    ProblemKind,
    ProblemType,
    domain_problem,
)
from tocsin.web.schemas.examples import (
    BACKFILL_ID,
    CLIENT_ID,
    CONSOLE_SESSION_ID,
    DELIVERY_ID,
    DESTINATION,
    KEY_ID,
    PASSKEY_ID,
    PROVIDER,
    REPLAY_ID,
    SCHEDULE_ID,
    SESSION_ID,
)


def _not_found(record: str, path: str, key: str = "ID") -> ProblemType:
    name = f"{record.lower().replace(' ', '-')}-not-found"
    return ProblemType(name, 404, f"There is no {record} with this {key}.", path=path)


# Credentials
UNAUTHORIZED_PUSH = ProblemType(
    "invalid-push-credential",
    401,
    "The request lacks valid credentials for this provider.",
    path=f"/api/push/{PROVIDER}",
)
UNAUTHORIZED_WEBHOOK = ProblemType(
    "invalid-webhook-credential",
    401,
    "The signature or secret of the request is not valid.",
    path=f"/api/ticket-events/{DESTINATION}",
)
METRICS_TOKEN_REQUIRED = ProblemType(
    "metrics-token-required",
    401,
    "Send the value of TOCSIN_METRICS_TOKEN as a bearer token in the Authorization header.",
    path="/metrics",
)
METRICS_LOCAL_ONLY = ProblemType(
    "metrics-local-only",
    403,
    "Metrics are available only to callers on the same machine. For other callers, set "
    "TOCSIN_METRICS_TOKEN and send it as a bearer token in the Authorization header.",
    path="/metrics",
)

# Rate limits
TOO_MANY_PUSHES = ProblemType(
    "too-many-pushes",
    503,
    "Too many pushes to this provider; try again in {seconds} s.",
    example={"seconds": 1},
    path=f"/api/push/{PROVIDER}",
)
PUSHES_UNDER_WAY = ProblemType(
    "pushes-under-way",
    503,
    "Pushes in progress use all memory reserved for pushes; try again in {seconds} s.",
    example={"seconds": 5},
    path=f"/api/push/{PROVIDER}",
)
NODE_SUSPENDED = ProblemType(
    "node-suspended",
    503,
    "This node is suspended: {reason}",
    example={"reason": "the clock of this node is 5m ahead of the database's"},
    path=f"/api/push/{PROVIDER}",
)

PROVIDER_STOPPED = ProblemType(
    "provider-stopped",
    503,
    "A person has disabled this provider; try again in {seconds} s.",
    example={"seconds": 60},
    path=f"/api/push/{PROVIDER}",
)

# Requests
PUSH_TOO_LARGE = ProblemType(
    "push-too-large",
    413,
    "The body exceeds {most}, the limit that max_body_mib sets for this provider.",
    example={"most": "16 MiB"},
    path=f"/api/push/{PROVIDER}",
)
WEBHOOK_TOO_LARGE = ProblemType(
    "webhook-too-large",
    413,
    "The body exceeds {most}, the limit for webhooks.",
    example={"most": "2 MiB"},
    path=f"/api/ticket-events/{DESTINATION}",
)
PUSH_NOT_PARSED = ProblemType(
    "push-not-parsed",
    422,
    "The payload could not be parsed: {reason}",
    example={"reason": "incident 1 of 1: external_id: missing; set a value"},
    path=f"/api/push/{PROVIDER}",
)
INVALID_SEARCH = domain_problem(
    "invalid-search",
    InvalidInputError("q: the closing quotation mark is missing (character 5)"),
    "/api/v1/search",
)
FUTURE_BACKFILL = ProblemType(
    "future-backfill",
    422,
    "`to` must be in the past (server time: {now}).",
    example={"now": "2026-11-21T05:33:01.123Z"},
    path="/api/admin/backfills",
)
UNKNOWN_PROVIDER = ProblemType(
    "unknown-provider",
    422,
    "There is no provider {provider!r}{suggestion}",
    example={"provider": "egde", "suggestion": "; did you mean 'edge'?"},
    path="/api/admin/backfills",
)
NO_BACKFILLS = ProblemType(
    "no-backfills",
    422,
    "The plugin {plugin!r} does not support backfills.",
    example={"plugin": "simple"},
    path="/api/admin/backfills",
)

# Records
INCIDENT_NOT_FOUND = ProblemType(
    "incident-not-found", 404, "There is no incident with this number."
)
INCIDENT_CHANGED = ProblemType(
    "incident-changed",
    412,
    "The incident has changed since you read it, and its ETag is now {tag}. Read the incident "
    "again. If your change still applies, send the new ETag as If-Match.",
    example={"tag": '"2a-9c0e9a8f4b1d4f0c"'},
)
TOO_MANY_COMMENTS = domain_problem(
    "too-many-comments",
    ConflictError(f"Incident 4711 has {MAX_COMMENTS} comments, which is the maximum."),
    "/api/v1/incidents/4711/comments",
)
INCIDENT_REMOVED = ProblemType(
    "incident-removed",
    404,
    "Retention deleted incident {number}, which last changed on {date}. Alert: {outcome}.",
    example={"number": 7, "date": "2026-01-21", "outcome": "alerted"},
)
API_KEY_NOT_FOUND = _not_found("API key", f"/api/admin/api-keys/{KEY_ID}")
API_CLIENT_NOT_FOUND = _not_found("API client", f"/api/admin/api-clients/{CLIENT_ID}")
CONSOLE_SESSION_NOT_FOUND = _not_found(
    "console session", f"/api/admin/console-sessions/{CONSOLE_SESSION_ID}"
)
PERSON_NOT_FOUND = _not_found("person", "/api/admin/people/ana", "name")
PASSKEY_NOT_FOUND = _not_found("passkey", f"/api/admin/people/ana/passkeys/{PASSKEY_ID}")
DESTINATION_NOT_FOUND = _not_found("destination", "/api/admin/destinations/soar", "name")
SUPPRESSION_NOT_FOUND = _not_found(
    "suppression rule", "/api/admin/suppressions/pentest-2026", "name"
)
DELIVERY_NOT_FOUND = _not_found("delivery", f"/api/admin/deliveries/{DELIVERY_ID}")
REPLAY_NOT_FOUND = _not_found("replay", f"/api/admin/replays/{REPLAY_ID}")
PROVIDER_NOT_FOUND = _not_found("provider", "/api/admin/providers/edge", "name")
BACKFILL_NOT_FOUND = _not_found("backfill", f"/api/admin/backfills/{BACKFILL_ID}")
QUARANTINED_RECORD_NOT_FOUND = _not_found("quarantined record", "/api/admin/quarantine/17")
SCHEDULE_NOT_FOUND = _not_found("schedule", f"/api/admin/schedules/{SCHEDULE_ID}")
PLUGIN_NOT_FOUND = _not_found("plugin", "/api/admin/plugins/webhook", "name")
SESSION_NOT_FOUND = _not_found("session", f"/api/v1/sessions/{SESSION_ID}")
STEP_NOT_FOUND = _not_found("step", f"/api/v1/investigations/{SESSION_ID}/steps/7", "number")
REPORT_NOT_FOUND = ProblemType(
    "report-not-found",
    404,
    "This session does not exist, or has no report yet.",
    path=f"/api/v1/investigations/{SESSION_ID}/report.json",
)
PUSH_PROVIDER_NOT_FOUND = ProblemType(
    "push-provider-not-found", 404, PATH_NOT_FOUND.detail, path=f"/api/push/{PROVIDER}"
)
NODE_UNKNOWN = ProblemType(
    "graph-node-not-found",
    404,
    "The graph does not contain {value!r}.",
    example={"value": "203.0.113.7"},
    path="/api/v1/graph/entity/203.0.113.7",
)
PATH_END_REMOVED = ProblemType(
    "graph-path-not-found",
    404,
    "One of the two nodes no longer exists.",
    path="/api/v1/graph/path",
)

# States of records
KEY_NOT_ACTIVE = ProblemType(
    "api-key-not-active",
    409,
    "The API key is {status}; only an active key can be rotated.",
    kind=ProblemKind.NOT_ACTIVE,
    example={"status": "disabled"},
    path=f"/api/admin/api-keys/{KEY_ID}/rotate",
)
CLIENT_NOT_ACTIVE = ProblemType(
    "api-client-not-active",
    409,
    "The API client is {status} permanently; create a new client.",
    kind=ProblemKind.NOT_ACTIVE,
    example={"status": "disabled"},
    path=f"/api/admin/api-clients/{CLIENT_ID}/regenerate-secret",
)
PERSON_NAME_TAKEN = ProblemType(
    "person-name-taken",
    409,
    "A person named {name!r} already exists.",
    kind=ProblemKind.NAME_TAKEN,
    example={"name": "ana"},
    path="/api/admin/people",
)
PERSON_DISABLED = ProblemType(
    "person-disabled",
    409,
    "The person is disabled; enable the person first.",
    path="/api/admin/people/ana/passkey-link",
)
PASSKEYS_UNAVAILABLE = ProblemType(
    "passkeys-unavailable",
    409,
    "{reason}",
    example={
        "reason": "Passkeys do not work at http://tocsin.example.com, which is not encrypted. Set "
        "TOCSIN_BASE_URL to an https:// URL with a host name, and restart the service."
    },
    path="/api/admin/people",
)
DESTINATION_NAME_TAKEN = ProblemType(
    "destination-name-taken",
    409,
    "A destination named {name!r} already exists.",
    kind=ProblemKind.NAME_TAKEN,
    example={"name": "soar"},
    path="/api/admin/destinations",
)
SUPPRESSION_NAME_TAKEN = ProblemType(
    "suppression-name-taken",
    409,
    "A suppression rule named {name!r} already exists. Names of ended rules cannot be used again.",
    kind=ProblemKind.NAME_TAKEN,
    example={"name": "pentest-2026"},
    path="/api/admin/suppressions",
)
SCHEDULE_NAME_TAKEN = ProblemType(
    "schedule-name-taken",
    409,
    "A schedule named {name!r} already exists.",
    kind=ProblemKind.NAME_TAKEN,
    example={"name": "nightly-hunt"},
    path="/api/admin/schedules",
)
DESTINATION_MANAGED = ProblemType(
    "destination-managed-by-file",
    409,
    "{reason}",
    kind=ProblemKind.MANAGED_BY_FILE,
    example={
        "reason": "This destination is defined in plugins.toml; change it there and apply the file."
    },
    path="/api/admin/destinations/soar",
)
DESTINATION_DELETED = ProblemType(
    "destination-deleted",
    409,
    "The destination was deleted; create a new one.",
    path="/api/admin/destinations/soar",
)
DESTINATION_CHANGED = ProblemType(
    "destination-changed",
    409,
    "Another request changed the destination; try again.",
    path="/api/admin/destinations/soar",
)
CONFIGURATION_INVALID = ProblemType(
    "invalid-configuration",
    409,
    "The configuration files of this node contain errors, so nothing was changed; correct the "
    "files and reload.",
    kind=ProblemKind.INVALID_CONFIGURATION,
    members=("problems",),
    example={"problems": ["plugins.toml: providers.edge.url: missing; set it"]},
    path="/api/admin/reload",
)
DESTINATION_NOT_RESUMABLE = ProblemType(
    "destination-not-resumable",
    409,
    "{reason}",
    example={
        "reason": "The destination was disabled manually. To enable it, set `enabled` to true."
    },
    path="/api/admin/destinations/soar/resume",
)
DELIVERY_NOT_REPLAYABLE = ProblemType(
    "delivery-not-replayable",
    409,
    "The delivery cannot be replayed: {reason}.",
    example={"reason": "an attempt is in progress"},
    path=f"/api/admin/deliveries/{DELIVERY_ID}/replay",
)
RECORD_NOT_RETRIED = ProblemType(
    "record-not-retried",
    409,
    "{reason}",
    example={"reason": "The record still cannot be parsed: external_id: missing"},
    path="/api/admin/quarantine/17/retry",
)
SCHEDULE_MANAGED = ProblemType(
    "schedule-managed-by-file",
    409,
    "This schedule is defined in plugins.toml; {verb} it there and apply the file.",
    kind=ProblemKind.MANAGED_BY_FILE,
    example={"verb": "change"},
    path=f"/api/admin/schedules/{SCHEDULE_ID}",
)
SCHEDULE_DELETED = domain_problem(
    "schedule-deleted", ScheduleDeletedError(), f"/api/admin/schedules/{SCHEDULE_ID}"
)
SCHEDULE_REMOVED = ProblemType(
    "schedule-removed-from-file",
    409,
    "plugins.toml no longer contains the schedule; add it back and apply the file.",
    path=f"/api/admin/schedules/{SCHEDULE_ID}/enable",
)
SCHEDULE_NOT_STARTED = domain_problem(
    "schedule-not-started",
    ScheduleNotStartedError(f"the previous run is in progress in {SESSION_ID}"),
    f"/api/admin/schedules/{SCHEDULE_ID}/run",
)
SESSION_BUSY = domain_problem(
    "session-busy",
    SessionBusyError(SessionStatus.RUNNING),
    f"/api/v1/sessions/{SESSION_ID}/message",
)

# Capacity and faults
TOO_MANY_SESSIONS = ProblemType(
    "too-many-sessions",
    503,
    "{count:,} sessions are already queued; try again later.",
    example={"count": 1_000},
    path="/api/v1/investigations/start",
)
NO_INVESTIGATOR = ProblemType(
    "no-investigator",
    503,
    "No investigator is configured: {reason}.",
    example={"reason": "the plugin `investigator` is disabled, and no other is configured"},
    path="/api/v1/investigations/start",
)
TOO_MANY_ENRICHMENTS = ProblemType(
    "too-many-enrichments",
    503,
    "{count} incidents are already being enriched; try again later.",
    example={"count": 4},
    path="/api/v1/incidents/4711/enrich",
)
ENRICHMENT_TOO_SLOW = ProblemType(
    "enrichment-too-slow",
    503,
    "Enrichment took longer than {seconds} s and was cancelled.",
    example={"seconds": 60},
    path="/api/v1/incidents/4711/enrich",
)
