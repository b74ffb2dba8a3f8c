"""Every way in which an endpoint refuses: when it can happen, and what it looks like."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import ClassVar

from pydantic import BaseModel

from tocsin.model import Json
from tocsin.web.context import Endpoint
from tocsin.web.openapi.conditions import (
    Condition,
    changes_schedule,
    conflicts,
    grants,
    investigates,
    is_admins,
    is_at,
    is_guarded,
    is_idempotent,
    is_in_graph,
    is_oauth,
    is_ours,
    is_pushed_to,
    is_scoped,
    names,
    needs_json,
    parses_json,
    reads_store,
    runs_schedule,
    shows_secret,
    takes_json,
)
from tocsin.web.openapi.examples import (
    BACKFILL_ID,
    CLIENT_ID,
    DELIVERY_ID,
    KEY_ID,
    PROVIDER,
    REPLAY_ID,
    SCHEDULE_ID,
    SESSION_ID,
)
from tocsin.web.problems import CONTENT_TYPE, OAuthErrorDocument, ProblemDocument, ProblemType
from tocsin.web.rate_limits import PUSH_REFUSED
from tocsin.web.routes.destinations import NewDestination
from tocsin.web.routes.oauth import REVOCATION_PATH, TOKEN_PATH
from tocsin.web.routes.push import TOO_LARGE
from tocsin.web.routes.schedules import NewSchedule


@dataclass(frozen=True, slots=True)
class Refusal:
    """One way to refuse, as a problem document."""

    content_type: ClassVar[str] = CONTENT_TYPE
    model: ClassVar[type[BaseModel]] = ProblemDocument

    name: str
    status: int
    detail: str
    applies: Condition
    kind: ProblemType | None = None
    members: Mapping[str, Json] = field(default_factory=dict)

    def example(self, endpoint: Endpoint) -> dict[str, Json]:
        """Return what the endpoint answers then."""
        type_, title = ("about:blank", HTTPStatus(self.status).phrase)
        if self.kind is not None:
            type_, title = self.kind.value
        words = {
            "scope": str(endpoint.access.value),
            "media_type": endpoint.media_type,
            "record": f"client:{CLIENT_ID}" if "/api-clients" in endpoint.path else f"key:{KEY_ID}",
        }
        members = {
            name: value.format(**words) if isinstance(value, str) else value
            for name, value in self.members.items()
        }
        return {
            "type": type_,
            "title": title,
            "status": self.status,
            "detail": self.detail.format(**words),
            "instance": endpoint.path.format(
                number=4711,
                key_id=KEY_ID,
                client_id=CLIENT_ID,
                name="soar",
                provider=PROVIDER,
                plugin="webhook",
                value="203.0.113.7",
                step=7,
                **_IDS,
            ),
            **members,
        }


class OAuthRefusal(Refusal):
    """One way to refuse, as RFC 6749 section 5.2 has it; the name is its error code."""

    __slots__ = ()

    content_type = "application/json"
    model = OAuthErrorDocument

    def example(self, endpoint: Endpoint) -> dict[str, Json]:  # noqa: ARG002 - one is as another
        """Return what the endpoint answers then."""
        return {"error": self.name, "error_description": self.detail}


_IDS = {
    "delivery_id": DELIVERY_ID,
    "replay_id": REPLAY_ID,
    "backfill_id": BACKFILL_ID,
    "schedule_id": SCHEDULE_ID,
    "session_id": SESSION_ID,
}


def list_refusals(endpoint: Endpoint) -> Iterator[Refusal]:
    """Yield every way in which the endpoint may refuse."""
    return (refusal for refusal in _REFUSALS if refusal.applies(endpoint))


_OF_REPORTS = (".json", ".md", ".html", "/findings", "/entities", "/timeline")
_FAULT = "This is a bug or a fault of ours; the log has it by X-Request-Id."
_NO_DATABASE = "The database cannot be reached for now; try again."
_REFUSALS = (
    Refusal(
        "two-credentials",
        400,
        "Send one credential: X-API-Key or Authorization, once.",
        is_guarded,
    ),
    Refusal("not-json", 400, "The body is not JSON: EOF while parsing an object.", parses_json),
    Refusal(
        "invalid-scope",
        400,
        "There is no scope 'incidents:write'; valid are graph:read, incidents:read, "
        "investigations:read, investigations:write, search:read.",
        grants,
        ProblemType.INVALID_SCOPE,
    ),
    Refusal(
        "idempotency-key",
        400,
        "Idempotency-Key takes one key of 1 to 255 printable characters.",
        is_idempotent,
    ),
    OAuthRefusal("invalid_request", 400, "A parameter is given more than once.", is_oauth),
    OAuthRefusal(
        "unsupported_grant_type",
        400,
        "grant_type must be client_credentials.",
        is_at(TOKEN_PATH),
    ),
    OAuthRefusal("invalid_scope", 400, "The client does not have: graph:read.", is_at(TOKEN_PATH)),
    OAuthRefusal(
        "invalid_grant", 400, "The token was issued to another client.", is_at(REVOCATION_PATH)
    ),
    Refusal("wrong", 401, "The API key is not valid.", is_scoped),
    Refusal("wrong", 401, "The bearer token is not valid.", is_admins),
    Refusal("wrong", 401, PUSH_REFUSED, is_pushed_to),
    OAuthRefusal("invalid_client", 401, "The client id or secret is not valid.", is_oauth),
    Refusal(
        "missing-scope",
        403,
        "API key does not have the required scope: {scope}",
        is_scoped,
        ProblemType.MISSING_SCOPE,
        {"required_scope": "{scope}"},
    ),
    Refusal("no-admin", 403, "This endpoint is for callers with the admin role.", is_admins),
    Refusal("unknown", 404, "There is no incident of this number.", names("number")),
    Refusal("unknown", 404, "There is no API key of this identifier.", names("key_id")),
    Refusal("unknown", 404, "There is no API client of this identifier.", names("client_id")),
    Refusal("unknown", 404, "There is no destination of this identifier.", names("name")),
    Refusal("unknown", 404, "There is no delivery of this identifier.", names("delivery_id")),
    Refusal("unknown", 404, "There is no replay of this identifier.", names("replay_id")),
    Refusal("unknown", 404, "There is no backfill of this identifier.", names("backfill_id")),
    Refusal("unknown", 404, "There is no schedule of this identifier.", names("schedule_id")),
    Refusal("unknown", 404, "There is no session of this identifier.", names("session_id")),
    Refusal("no-step", 404, "There is no step of this identifier.", names("step")),
    Refusal(
        "no-report",
        404,
        "There is no report of this identifier, or none yet.",
        lambda endpoint: endpoint.path.endswith(_OF_REPORTS),
    ),
    Refusal("unknown", 404, "Nothing is known of '203.0.113.7'.", is_in_graph),
    Refusal("unknown", 404, "There is no plugin of this identifier.", names("plugin")),
    Refusal("unknown", 404, "There is nothing at this path.", names("provider")),
    Refusal("not-acceptable", 406, "What is here comes as {media_type} alone.", is_ours),
    Refusal(
        "not-active",
        409,
        "The API key is disabled; only an active one can be rotated.",
        lambda endpoint: names("key_id")(endpoint) and conflicts(endpoint),
        ProblemType.NOT_ACTIVE,
    ),
    Refusal(
        "not-active",
        409,
        "The API client is disabled for good; create a new one.",
        lambda endpoint: names("client_id")(endpoint) and conflicts(endpoint),
        ProblemType.NOT_ACTIVE,
    ),
    Refusal(
        "name-taken",
        409,
        "There is a destination 'soar' already.",
        lambda endpoint: endpoint.body is NewDestination,
        ProblemType.NAME_TAKEN,
    ),
    Refusal(
        "name-taken",
        409,
        "There is a schedule 'nightly-hunt' already.",
        lambda endpoint: endpoint.body is NewSchedule,
        ProblemType.NAME_TAKEN,
    ),
    Refusal(
        "managed-by-file",
        409,
        "plugins.toml says what this destination is; change it there and apply it.",
        lambda endpoint: names("name")(endpoint) and conflicts(endpoint),
        ProblemType.MANAGED_BY_FILE,
    ),
    Refusal(
        "managed-by-file",
        409,
        "plugins.toml says what this schedule is; change it there and apply it.",
        changes_schedule,
        ProblemType.MANAGED_BY_FILE,
    ),
    Refusal(
        "deleted",
        409,
        "The destination was deleted; create it anew.",
        lambda endpoint: names("name")(endpoint) and conflicts(endpoint),
    ),
    Refusal(
        "deleted",
        409,
        "The schedule was deleted; create it anew.",
        lambda endpoint: (
            names("schedule_id")(endpoint) and conflicts(endpoint) and endpoint.method != "DELETE"
        ),
    ),
    Refusal(
        "removed-from-file",
        409,
        "plugins.toml does not name the schedule any more; apply one that does.",
        lambda endpoint: names("schedule_id")(endpoint) and endpoint.path.endswith("/enable"),
    ),
    Refusal(
        "under-way",
        409,
        "It is not run now: the run before is under way in ses_01KAJD9V3N8Q4R5S6T7V8W9X0Y.",
        runs_schedule,
    ),
    Refusal(
        "under-way",
        409,
        "The delivery cannot be replayed: it is being attempted right now.",
        lambda endpoint: names("delivery_id")(endpoint) and conflicts(endpoint),
    ),
    Refusal(
        "under-way",
        409,
        "This session is running; wait until it has completed, or cancel it, before you send "
        "another message.",
        lambda endpoint: names("session_id")(endpoint) and conflicts(endpoint),
    ),
    Refusal(
        "in-flight",
        409,
        "The first request with this Idempotency-Key is still under way; try again.",
        is_idempotent,
        ProblemType.IDEMPOTENCY_KEY_IN_FLIGHT,
    ),
    Refusal(
        "secret-shown",
        409,
        "This request has taken effect before, for {record}; its answer held a secret, which is "
        "shown once.",
        shows_secret,
        ProblemType.SECRET_SHOWN,
        {"record": "{record}"},
    ),
    Refusal("slow-body", 408, "The body did not come within 30 seconds.", takes_json),
    Refusal("no-length", 411, "Send a body, with Content-Length or in chunks.", needs_json),
    Refusal("too-large", 413, "A body holds 65536 bytes at most.", parses_json),
    Refusal("too-large", 413, TOO_LARGE, is_pushed_to),
    OAuthRefusal("invalid_request", 413, "A body holds 65536 bytes at most.", is_oauth),
    Refusal("media-type", 415, "Send the body as application/json.", takes_json),
    Refusal(
        "invalid-request",
        422,
        "1 mistake in the query parameters.",
        is_ours,
        ProblemType.INVALID_REQUEST,
        {"errors": [{"path": "verbose", "detail": "unknown key; remove it"}]},
    ),
    Refusal(
        "not-understood",
        422,
        "Nothing of it could be understood: incident 1 of 1: external_id: missing; give it a value",
        is_pushed_to,
    ),
    Refusal(
        "not-understood",
        422,
        "q: a quotation mark is open; close it with another one",
        is_at("/api/v1/search"),
    ),
    Refusal(
        "key-reused",
        422,
        "This Idempotency-Key came with another request before; take a new one.",
        is_idempotent,
        ProblemType.IDEMPOTENCY_KEY_REUSED,
    ),
    Refusal(
        "too-many-requests",
        429,
        "Too many requests; try again in 5 s.",
        is_guarded,
        ProblemType.TOO_MANY_REQUESTS,
    ),
    Refusal(
        "too-many-requests",
        429,
        "Too many failed authentications from this address; try again in 5 s.",
        is_pushed_to,
        ProblemType.TOO_MANY_REQUESTS,
    ),
    OAuthRefusal("temporarily_unavailable", 429, "Too many requests; try again in 5 s.", is_oauth),
    Refusal("fault", 500, _FAULT, is_ours),
    OAuthRefusal("server_error", 500, _FAULT, is_oauth),
    Refusal("no-database", 503, _NO_DATABASE, reads_store),
    Refusal(
        "too-many-waiting",
        503,
        "1,000 sessions wait to be investigated; try again later.",
        investigates,
    ),
    Refusal(
        "no-investigator",
        503,
        "This service investigates nothing: the plugin `investigator` is disabled, and no other is "
        "named.",
        runs_schedule,
    ),
    Refusal(
        "too-many-enriched",
        503,
        "4 incidents are being enriched already; try again later.",
        is_at("/api/v1/incidents/{number}/enrich"),
    ),
    Refusal(
        "too-much",
        503,
        "Too much is pushed to this provider; try again in 1 s.",
        is_pushed_to,
    ),
    OAuthRefusal("temporarily_unavailable", 503, _NO_DATABASE, is_oauth),
)
