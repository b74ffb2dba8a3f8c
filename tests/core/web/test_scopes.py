"""Scopes open exactly the endpoints of the specification, and the admin role opens the rest."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from api_server import PUSHED, problem
from tocsin.credentials import Scope
from tocsin.web.context import AccessRole, Endpoint
from tocsin.web.endpoints import ENDPOINTS

KINDS = ["API key", "access token"]
SENDERS = {AccessRole.CLIENT, AccessRole.SENDER, AccessRole.WEBHOOK}
on_one_database = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)

# The table of the specification, and what was added; an endpoint takes the first line that fits.
TABLE = [
    ("GET", r"/api/v1/incidents(/.*)?", "incidents:read"),
    ("PATCH", r"/api/v1/incidents(/{number})?", "incidents:write"),
    ("POST", r"/api/v1/incidents/{number}/comments", "incidents:write"),
    ("POST", r"/api/v1/incidents/{number}/enrich", "investigations:write"),
    ("POST", r"/api/v1/investigations/start", "investigations:write"),
    ("GET", r"/api/v1/investigations(/.*)?", "investigations:read"),
    ("GET", r"/api/v1/sessions/.*", "investigations:read"),
    ("POST", r"/api/v1/sessions/{\w+}/(message|cancel)", "investigations:write"),
    ("GET", r"/api/v1/search(/.*)?", "search:read"),
    ("GET", r"/api/v1/graph/.*", "graph:read"),
    ("GET", r"/api/v1/status-mismatches", "incidents:read"),
]


def test_the_scopes_are_those_of_the_specification():
    assert sorted(Scope) == [
        "graph:read",
        "incidents:read",
        "incidents:write",
        "investigations:read",
        "investigations:write",
        "search:read",
    ]


def _scope_of(endpoint: Endpoint) -> str | None:
    for method, path, scope in TABLE:
        if endpoint.method == method and re.fullmatch(path, endpoint.path):
            return scope
    return None


@pytest.mark.parametrize(
    "endpoint",
    [endpoint for endpoint in ENDPOINTS if endpoint.path.startswith("/api/v1/")],
    ids=lambda endpoint: f"{endpoint.method} {endpoint.path}",
)
def test_an_integration_endpoint_asks_for_the_scope_of_the_specification(endpoint):
    assert endpoint.access == _scope_of(endpoint)


def test_everything_below_admin_is_for_admins_and_nothing_else_is():
    for endpoint in ENDPOINTS:
        assert (endpoint.access is AccessRole.ADMIN) == endpoint.path.startswith("/api/admin/")


async def credential(api, kind: str, *scopes: Scope) -> dict[str, str]:
    """Return the headers of a credential of this kind with these scopes."""
    if kind == "API key":
        return {"X-API-Key": await api.key(*scopes)}
    return {"Authorization": f"Bearer {await api.access_token(*scopes)}"}


def requests(*roles: type) -> Iterator[tuple[str, str, Endpoint]]:
    """Yield each method and path, HEAD included, of the endpoints with such an access."""
    for endpoint in ENDPOINTS:
        if isinstance(endpoint.access, roles):
            path = re.sub(r"{\w+}", "1", endpoint.path.replace("{provider}", PUSHED))
            yield endpoint.method, path, endpoint
            if endpoint.method == "GET":
                yield "HEAD", path, endpoint


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scope", list(Scope))
@on_one_database
async def test_a_scope_opens_its_own_endpoints_and_no_others(api, kind, scope):
    headers = await credential(api, kind, scope)
    for method, path, endpoint in requests(Scope):
        response = await api.client.request(method, path, headers=headers)
        if endpoint.access == scope:
            assert response.status not in {401, 403}, f"{method} {path}"
        else:
            await _lacks(endpoint.access, response)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scope", list(Scope))
@on_one_database
async def test_all_the_other_scopes_do_not_make_up_for_one_that_is_missing(api, kind, scope):
    headers = await credential(api, kind, *(other for other in Scope if other != scope))
    for method, path, endpoint in requests(Scope):
        response = await api.client.request(method, path, headers=headers)
        if endpoint.access == scope:
            await _lacks(scope, response)
        else:
            assert response.status not in {401, 403}, f"{method} {path}"


async def _lacks(scope: Scope, response) -> None:
    """The answer is the specification's, in its words, for both kinds of credentials."""
    if response.method == "HEAD":
        assert response.status == 403
        return
    document = await problem(response, 403)
    assert document["detail"] == f"API key does not have the required scope: {scope}"
    assert document["required_scope"] == scope
    assert document["type"] == "/problems/missing-scope"


@pytest.mark.parametrize("kind", KINDS)
@on_one_database
async def test_no_scope_opens_an_admin_endpoint(api, kind):
    headers = await credential(api, kind, *Scope)
    for method, path, endpoint in requests(AccessRole):
        response = await api.client.request(method, path, headers=headers)
        if endpoint.access is AccessRole.ADMIN:
            assert response.status == 403, f"{method} {path}"
        elif endpoint.access is AccessRole.PUBLIC:
            assert response.status not in {401, 403}, f"{method} {path}"


@on_one_database
async def test_the_admin_role_opens_every_admin_endpoint_and_no_scope(api):
    headers = await api.admin()
    for method, path, endpoint in requests(AccessRole, Scope):
        if endpoint.access in {*SENDERS, AccessRole.PUBLIC}:
            continue
        response = await api.client.request(method, path, headers=headers)
        refused = endpoint.access is not AccessRole.ADMIN
        assert (response.status == 403) == refused, f"{method} {path}"


@on_one_database
async def test_without_a_credential_only_what_is_public_opens(api):
    for method, path, endpoint in requests(AccessRole, Scope):
        response = await api.client.request(method, path)
        if endpoint.access is AccessRole.PUBLIC:
            assert response.status not in {401, 403}, f"{method} {path}"
        elif endpoint.access not in SENDERS:
            assert response.status == 401, f"{method} {path}"
            assert response.headers["WWW-Authenticate"]
