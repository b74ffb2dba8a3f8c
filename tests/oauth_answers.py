"""Requests of OAuth 2.0 clients, and error responses."""

from __future__ import annotations

import re
from base64 import b64encode

GRANT = {"grant_type": "client_credentials"}
FORM = "application/x-www-form-urlencoded"
TOKEN = "/oauth/token"
INTROSPECT = "/oauth/introspect"
REVOKE = "/oauth/revoke"

# RFC 6749 section 5.2
_CODE = re.compile(r"[\x20-\x21\x23-\x5b\x5d-\x7e]+")


def basic(client: dict[str, str]) -> dict[str, str]:
    """Return the header by which this client proves itself."""
    pair = f"{client['client_id']}:{client['client_secret']}"
    return {"Authorization": f"Basic {b64encode(pair.encode()).decode()}"}


async def oauth_error(response, status: int, code: str) -> str:
    """Return the description of the error that the response must be (RFC 6749 section 5.2)."""
    assert response.status == status, await response.text()
    assert response.content_type == "application/json"
    assert response.headers["Cache-Control"] == "no-store"
    assert response.headers["Pragma"] == "no-cache"
    assert response.headers["X-Request-Id"]
    challenge = 'Basic realm="tocsin"' if status == 401 else None
    assert response.headers.get("WWW-Authenticate") == challenge
    content = await response.json()
    assert set(content) == {"error", "error_description"}
    assert content["error"] == code
    assert all(_CODE.fullmatch(text) for text in content.values())
    return content["error_description"]
