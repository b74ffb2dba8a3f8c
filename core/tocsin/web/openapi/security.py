"""Security schemes of the description."""

from __future__ import annotations

from typing import Any

from tocsin.credentials import Scope
from tocsin.web.authentication import API_KEY_HEADER
from tocsin.web.context import Access, AccessRole
from tocsin.web.routes.oauth import TOKEN_PATH

SCOPES = {
    Scope.INVESTIGATIONS_READ: "Read investigation sessions and results",
    Scope.INVESTIGATIONS_WRITE: "Start investigations and send follow-up messages",
    Scope.INCIDENTS_READ: "List and view synced incidents",
    Scope.INCIDENTS_WRITE: "Triage incidents: assign, classify, tag, link and comment on them",
    Scope.SEARCH_READ: "Search investigations and entities",
    Scope.GRAPH_READ: "Query the knowledge graph",
}


def security_schemes(issuer_url: str) -> dict[str, Any]:
    """Return all security schemes."""
    scopes = {scope.value: words for scope, words in SCOPES.items()}
    grant = {"tokenUrl": issuer_url + TOKEN_PATH, "scopes": scopes}
    return {
        "apiKey": {
            "type": "apiKey",
            "in": "header",
            "name": API_KEY_HEADER,
            "description": "An API key that has the scope in the operation's `x-required-scope`.",
            "x-scopes": scopes,
        },
        "oauth2": {
            "type": "oauth2",
            "description": "An API client's access token, as `Authorization: Bearer`.",
            "flows": {"clientCredentials": grant},
        },
        "adminToken": {
            "type": "http",
            "scheme": "bearer",
            "bearerFormat": "JWT",
            "description": "A token with the admin role, from `tocsin admin token` or from the "
            "OpenID Connect issuer that the operator configured.",
        },
        "clientSecret": {
            "type": "http",
            "scheme": "basic",
            "description": "An API client's `client_id` and `client_secret`. Send them "
            "with HTTP Basic or as form fields, but not both.",
        },
        "pushToken": {
            "type": "http",
            "scheme": "bearer",
            "description": "The provider's `token`.",
        },
        "pushPassword": {
            "type": "http",
            "scheme": "basic",
            "description": "The provider's `token` as the password, with any username.",
        },
        "webhookSecret": {
            "type": "apiKey",
            "in": "header",
            "name": "X-Hub-Signature-256",
            "description": "Signature with the destination's `webhook_secret`, or the secret "
            "itself. The header and the method depend on the product.",
        },
        "pushSignature": {
            "type": "apiKey",
            "in": "header",
            "name": "webhook-signature",
            "description": "Standard Webhooks 1.0.0 signature: `v1,` and the base64 of an "
            "HMAC-SHA256 keyed with the provider's `secret`. Also send `webhook-id` and "
            "`webhook-timestamp`.",
        },
    }


def security_requirements(access: Access) -> list[dict[str, list[str]]]:
    """Return the schemes that an endpoint accepts; empty for a public one."""
    match access:
        case AccessRole.PUBLIC:
            return []
        case AccessRole.ADMIN:
            return [{"adminToken": []}]
        case AccessRole.CLIENT:
            return [{"clientSecret": []}, {}]
        case AccessRole.SENDER:
            return [{"pushToken": []}, {"pushPassword": []}, {"pushSignature": []}]
        case AccessRole.WEBHOOK:
            return [{"webhookSecret": []}]
        case scope:
            return [{"apiKey": []}, {"oauth2": [scope.value]}]
