"""What the endpoints are grouped by."""

from __future__ import annotations

from dataclasses import dataclass

from tocsin.web.calls import Endpoint


@dataclass(frozen=True, slots=True)
class Tag:
    """A group of endpoints, told by how their paths begin."""

    name: str
    description: str
    prefixes: tuple[str, ...]


OAUTH = Tag(
    "OAuth 2.0",
    "Access tokens for API clients, by the client-credentials grant (RFC 6749 section 4.4).",
    ("/oauth/", "/.well-known/"),
)
TAGS = (
    Tag(
        "Incidents",
        "What was synced from the SIEMs, normalised. Poll with `changed_after` to miss nothing.",
        ("/api/v1/incidents",),
    ),
    Tag(
        "Investigations",
        "Finding out what is behind incidents and entities: start, poll, read, go on.",
        ("/api/v1/investigations", "/api/v1/sessions"),
    ),
    Tag(
        "Schedules",
        "What is investigated again and again, administered by admins.",
        ("/api/admin/schedules",),
    ),
    Tag(
        "Search",
        "The history of incidents and investigations, by words; entities, by value.",
        ("/api/v1/search",),
    ),
    Tag(
        "Knowledge graph",
        "How entities, incidents and investigations belong together, and what says so.",
        ("/api/v1/graph",),
    ),
    OAUTH,
    Tag(
        "API keys",
        "Long-lived keys for scripts and integrations, administered by admins.",
        ("/api/admin/api-keys",),
    ),
    Tag(
        "API clients",
        "Clients that obtain short-lived access tokens, administered by admins.",
        ("/api/admin/api-clients",),
    ),
    Tag("Push", "Where others send incidents by themselves.", ("/api/push/",)),
    Tag(
        "Accounting",
        "What became of one incident, and of everything in a period.",
        ("/api/admin/trace", "/api/admin/proof"),
    ),
    Tag(
        "Providers",
        "How the SIEMs are read, and reading stretches of the past.",
        ("/api/admin/providers", "/api/admin/backfills"),
    ),
    Tag(
        "Destinations",
        "Who is told of events, administered by admins.",
        ("/api/admin/destinations", "/api/admin/channels"),
    ),
    Tag(
        "Deliveries",
        "What arrived where and, if not, why not; sending it again, one or many.",
        ("/api/admin/deliveries", "/api/admin/replays"),
    ),
    Tag("Plugins", "What is installed, and what of it is used.", ("/api/admin/plugins",)),
    Tag("Audit", "What admins did, and how often callers were refused.", ("/api/admin/audit",)),
    Tag(
        "Service",
        "How the service is doing, and what it offers.",
        ("/healthz", "/readyz", "/metrics", "/openapi.json", "/docs"),
    ),
)


def tag_of(endpoint: Endpoint) -> Tag:
    """Return the group that the endpoint belongs to; LookupError where it has none."""
    for tag in TAGS:
        if endpoint.path.startswith(tag.prefixes):
            return tag
    raise LookupError(f"{endpoint.path} begins like no tag's paths: name a prefix in TAGS")
