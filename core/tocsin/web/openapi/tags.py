"""Tags that group the endpoints."""

from __future__ import annotations

from dataclasses import dataclass

from tocsin.web.context import Endpoint


@dataclass(frozen=True, slots=True)
class EndpointTag:
    """A group of endpoints, by the prefixes of their paths."""

    name: str
    description: str
    prefixes: tuple[str, ...]


OAUTH = EndpointTag(
    "OAuth 2.0",
    "Access tokens for API clients, with the client credentials grant (RFC 6749 section 4.4).",
    ("/oauth/", "/.well-known/"),
)
PLUGIN_ROUTES = EndpointTag(
    "Plugin routes", "Routes that plugins add to the API.", ("/api/plugins/",)
)
TAGS = (
    EndpointTag(
        "Incidents",
        "Normalized incidents from all SIEMs. Poll with `changed_after` to receive every change.",
        ("/api/v1/incidents", "/api/v1/status-mismatches"),
    ),
    EndpointTag(
        "Investigations",
        "Investigations of incidents and entities, their reports and follow-up messages.",
        ("/api/v1/investigations", "/api/v1/sessions"),
    ),
    EndpointTag(
        "Schedules",
        "Recurring investigations.",
        ("/api/admin/schedules",),
    ),
    EndpointTag(
        "Search",
        "Full-text search of incidents and investigations, and lookup of entities.",
        ("/api/v1/search",),
    ),
    EndpointTag(
        "Knowledge graph",
        "Relations between entities, incidents and investigations, with their sources.",
        ("/api/v1/graph",),
    ),
    OAUTH,
    EndpointTag(
        "API keys",
        "Long-lived keys for scripts and integrations.",
        ("/api/admin/api-keys",),
    ),
    EndpointTag(
        "API clients",
        "Clients that obtain short-lived access tokens.",
        ("/api/admin/api-clients",),
    ),
    EndpointTag(
        "Console sessions",
        "Sessions of people in the console.",
        ("/api/admin/console-sessions",),
    ),
    EndpointTag(
        "People",
        "People who sign in to the console with passkeys.",
        ("/api/admin/people",),
    ),
    EndpointTag(
        "Push",
        "Requests that other systems send: incidents, webhooks from ticket products, and "
        "button presses from chat messages.",
        ("/api/push/", "/api/ticket-events/", "/api/message-actions/"),
    ),
    EndpointTag(
        "Accounting",
        "Traces of incidents, and audits of periods.",
        ("/api/admin/trace", "/api/admin/proof"),
    ),
    EndpointTag(
        "Providers",
        "Provider status, backfills of time ranges, and records that could not be parsed.",
        ("/api/admin/providers", "/api/admin/backfills", "/api/admin/quarantine"),
    ),
    EndpointTag(
        "Destinations",
        "Receivers of events, and their channels.",
        ("/api/admin/destination", "/api/admin/channels"),
    ),
    EndpointTag(
        "Deliveries",
        "Deliveries and their attempts, replays, and rerouted events.",
        ("/api/admin/deliveries", "/api/admin/replays", "/api/admin/events"),
    ),
    EndpointTag(
        "Suppressions",
        "Rules that keep matching events from destinations until the rules end.",
        ("/api/admin/suppressions",),
    ),
    EndpointTag(
        "Plugins",
        "Installed plugins, and the tables of `plugins.toml` that use them.",
        ("/api/admin/plugins",),
    ),
    PLUGIN_ROUTES,
    EndpointTag(
        "Audit", "Audit log: actions, and counts of rejected requests.", ("/api/admin/audit",)
    ),
    EndpointTag("Erasure", "Erasure of a person or another entity.", ("/api/admin/erasures",)),
    EndpointTag(
        "Service",
        "The service's health and metrics, the reload of its files, and this API's description.",
        ("/healthz", "/readyz", "/metrics", "/api/admin/reload", "/openapi.json", "/docs"),
    ),
)


def find_tag(endpoint: Endpoint) -> EndpointTag:
    """Return the tag of an endpoint; raises LookupError if it has none."""
    for tag in TAGS:
        if endpoint.path.startswith(tag.prefixes):
            return tag
    raise LookupError(f"{endpoint.path} matches no tag; add its prefix to a tag in TAGS")
