"""What the endpoints are grouped by."""

from __future__ import annotations

from dataclasses import dataclass

from tocsin.web.context import Endpoint


@dataclass(frozen=True, slots=True)
class EndpointTag:
    """A group of endpoints, told by how their paths begin."""

    name: str
    description: str
    prefixes: tuple[str, ...]


OAUTH = EndpointTag(
    "OAuth 2.0",
    "Access tokens for API clients, by the client-credentials grant (RFC 6749 section 4.4).",
    ("/oauth/", "/.well-known/"),
)
TAGS = (
    EndpointTag(
        "Incidents",
        "What was synced from the SIEMs, normalised. Poll with `changed_after` to miss nothing.",
        ("/api/v1/incidents",),
    ),
    EndpointTag(
        "Investigations",
        "Finding out what is behind incidents and entities: start, poll, read, go on.",
        ("/api/v1/investigations", "/api/v1/sessions"),
    ),
    EndpointTag(
        "Schedules",
        "What is investigated again and again, administered by admins.",
        ("/api/admin/schedules",),
    ),
    EndpointTag(
        "Search",
        "The history of incidents and investigations, by words; entities, by value.",
        ("/api/v1/search",),
    ),
    EndpointTag(
        "Knowledge graph",
        "How entities, incidents and investigations belong together, and what says so.",
        ("/api/v1/graph",),
    ),
    OAUTH,
    EndpointTag(
        "API keys",
        "Long-lived keys for scripts and integrations, administered by admins.",
        ("/api/admin/api-keys",),
    ),
    EndpointTag(
        "API clients",
        "Clients that obtain short-lived access tokens, administered by admins.",
        ("/api/admin/api-clients",),
    ),
    EndpointTag("Push", "Where others send incidents by themselves.", ("/api/push/",)),
    EndpointTag(
        "Accounting",
        "What became of one incident, and of everything in a period.",
        ("/api/admin/trace", "/api/admin/proof"),
    ),
    EndpointTag(
        "Providers",
        "How the SIEMs are read, and reading stretches of the past.",
        ("/api/admin/providers", "/api/admin/backfills"),
    ),
    EndpointTag(
        "Destinations",
        "Who is told of events, administered by admins.",
        ("/api/admin/destinations", "/api/admin/channels"),
    ),
    EndpointTag(
        "Deliveries",
        "What arrived where and, if not, why not; sending it again, one or many.",
        ("/api/admin/deliveries", "/api/admin/replays"),
    ),
    EndpointTag("Plugins", "What is installed, and what of it is used.", ("/api/admin/plugins",)),
    EndpointTag(
        "Audit", "What admins did, and how often callers were refused.", ("/api/admin/audit",)
    ),
    EndpointTag(
        "Service",
        "How the service is doing, and what it offers.",
        ("/healthz", "/readyz", "/metrics", "/openapi.json", "/docs"),
    ),
)


def find_tag(endpoint: Endpoint) -> EndpointTag:
    """Return the group that the endpoint belongs to; LookupError where it has none."""
    for tag in TAGS:
        if endpoint.path.startswith(tag.prefixes):
            return tag
    raise LookupError(f"{endpoint.path} begins like no tag's paths: name a prefix in TAGS")
