"""Clients that others wrote, against the API on a socket."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import jwt
import pytest
import requests
from authlib.integrations.base_client import OAuthError
from authlib.integrations.requests_client import OAuth2Session
from authlib.oauth2.rfc8414 import AuthorizationServerMetadata
from oauthlib.oauth2 import BackendApplicationClient, InvalidClientError, InvalidScopeError
from requests.auth import HTTPBasicAuth
from requests_oauthlib import OAuth2Session as RequestsOauthlib

from api_server import URL
from tocsin.credentials import Scope

INCIDENTS = "/api/v1/incidents"
METHODS = ["client_secret_basic", "client_secret_post"]

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@pytest.fixture
async def client(api) -> dict[str, str]:
    return await api.client_credentials(Scope.INCIDENTS_READ, Scope.SEARCH_READ)


@pytest.fixture
def url(api) -> Callable[[str], str]:
    """Return where a path of the API is."""
    return lambda path: str(api.client.make_url(path))


@pytest.fixture
def plain_text_is_allowed(monkeypatch) -> None:
    """These clients insist on HTTPS, even to this machine."""
    monkeypatch.setenv("OAUTHLIB_INSECURE_TRANSPORT", "1")


@pytest.mark.parametrize("method", METHODS)
async def test_authlib(client, url, method):
    def use() -> None:
        with OAuth2Session(**client, token_endpoint_auth_method=method) as session:
            token = session.fetch_token(url("/oauth/token"), grant_type="client_credentials")
            assert (token["token_type"], token["expires_in"]) == ("Bearer", 1800)
            assert session.get(url(INCIDENTS)).status_code == 200
            access = token["access_token"]
            described = session.introspect_token(url("/oauth/introspect"), token=access)
            assert described.json()["active"] is True
            session.revoke_token(url("/oauth/revoke"), token=access)
            assert session.get(url(INCIDENTS)).status_code == 401

    await asyncio.to_thread(use)


async def test_authlib_fetches_a_new_token_by_itself_once_one_has_expired(client, url, clock):
    def use() -> list[int]:
        with OAuth2Session(
            **client, token_endpoint=url("/oauth/token"), grant_type="client_credentials"
        ) as session:
            session.fetch_token()
            clock.advance(minutes=30)
            answers = [session.get(url(INCIDENTS))]
            session.token = {**session.token, "expires_at": 1}
            answers.append(session.get(url(INCIDENTS)))
            return [answer.status_code for answer in answers]

    assert await asyncio.to_thread(use) == [401, 200]


async def test_authlib_is_told_what_is_wrong(client, url):
    def fetch(secret: str, scope: str) -> None:
        with OAuth2Session(client["client_id"], secret, scope=scope) as session:
            session.fetch_token(url("/oauth/token"), grant_type="client_credentials")

    with pytest.raises(
        OAuthError, match="invalid_scope: The client does not have these scopes: graph:read"
    ):
        await asyncio.to_thread(fetch, client["client_secret"], "graph:read")
    with pytest.raises(OAuthError, match="invalid_client: The client ID or secret is not valid"):
        await asyncio.to_thread(fetch, "wrong", "search:read")


async def test_authlib_finds_the_metadata_valid(url):
    def read() -> None:
        answer = requests.get(url("/.well-known/oauth-authorization-server"), timeout=10)
        # Authlib takes an empty list for none, which RFC 8414 section 2 does not
        metadata = answer.json() | {"response_types_supported": ["none"]}
        AuthorizationServerMetadata(metadata).validate()

    await asyncio.to_thread(read)


@pytest.mark.usefixtures("plain_text_is_allowed")
@pytest.mark.parametrize("method", METHODS)
async def test_requests_oauthlib(client, url, method):
    def use() -> int:
        backend = BackendApplicationClient(client_id=client["client_id"])
        with RequestsOauthlib(client=backend) as session:
            proof = (
                {"auth": HTTPBasicAuth(*client.values())}
                if method == "client_secret_basic"
                else {"client_secret": client["client_secret"], "include_client_id": True}
            )
            token = session.fetch_token(url("/oauth/token"), **proof)
            assert token["scope"] == ["incidents:read", "search:read"]
            return session.get(url(INCIDENTS)).status_code

    assert await asyncio.to_thread(use) == 200


@pytest.mark.usefixtures("plain_text_is_allowed")
async def test_requests_oauthlib_is_told_what_is_wrong(client, url):
    def fetch(scope: list[str], secret: str) -> None:
        backend = BackendApplicationClient(client_id=client["client_id"], scope=scope)
        with RequestsOauthlib(client=backend) as session:
            session.fetch_token(url("/oauth/token"), client_secret=secret)

    with pytest.raises(InvalidScopeError, match="does not have these scopes: graph:read"):
        await asyncio.to_thread(fetch, ["graph:read"], client["client_secret"])
    with pytest.raises(InvalidClientError, match="not valid"):
        await asyncio.to_thread(fetch, ["search:read"], "wrong")


async def test_pyjwt_verifies_a_token_by_the_published_keys(api, url):
    token = await api.access_token(Scope.INCIDENTS_READ)

    def verify() -> dict:
        keys = jwt.PyJWKClient(url("/.well-known/jwks.json"))
        # its times are by the test's clock
        times = {"verify_exp": False, "verify_iat": False}
        return jwt.decode(
            token,
            keys.get_signing_key_from_jwt(token),
            algorithms=["RS256"],
            audience=URL,
            issuer=URL,
            options={**times, "strict_aud": True},
        )

    assert (await asyncio.to_thread(verify))["scope"] == "incidents:read"
