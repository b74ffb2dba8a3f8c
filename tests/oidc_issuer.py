"""Loopback OpenID Connect issuer: keys, tokens and sign-in."""

from __future__ import annotations

import asyncio
import json
import secrets
from base64 import b64decode
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from typing import Any
from urllib.parse import unquote_plus

from aiohttp import web
from aiohttp.test_utils import TestServer
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from jwt import PyJWS
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm
from jwt.utils import base64url_encode
from yarl import URL

KINDS = {"RS": RSAAlgorithm, "PS": RSAAlgorithm, "ES": ECAlgorithm, "Ed": OKPAlgorithm}


@dataclass
class Key:
    """A key to sign with, and how the issuer publishes it."""

    private: Any
    algorithm: str
    kid: str | None
    members: dict[str, Any] = field(default_factory=dict)
    """Members of its publication that are added, replaced, or left out where they are None."""

    @property
    def public(self) -> dict[str, Any]:
        members = KINDS[self.algorithm[:2]].to_jwk(self.private.public_key(), as_dict=True)
        return _present(members | {"use": "sig", "kid": self.kid} | self.members)

    def sign(self, claims: Any, **header: Any) -> str:
        """Return a token with these claims and headers, whatever they are; None leaves one out."""
        algorithm = PyJWS().get_algorithm_by_name(self.algorithm)
        return make_token(
            _present({"alg": self.algorithm, "kid": self.kid} | header),
            json.dumps(claims).encode(),
            lambda signed: algorithm.sign(signed, self.private),
        )


def make_token(header: Any, body: bytes, sign: Callable[[bytes], bytes] = lambda _: b"") -> str:
    """Return a token that no library may be willing to make."""
    signed = b".".join(base64url_encode(part) for part in (json.dumps(header).encode(), body))
    return b".".join((signed, base64url_encode(sign(signed)))).decode()


def _present(members: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


@cache
def rsa_key(kid: str | None = "rsa", algorithm: str = "RS256", bits: int = 2048) -> Key:
    return Key(rsa.generate_private_key(65537, bits), algorithm, kid)


def ec_key(kid: str | None = "ec", algorithm: str = "ES256") -> Key:
    curves = {"ES256": ec.SECP256R1(), "ES384": ec.SECP384R1(), "ES512": ec.SECP521R1()}
    return Key(ec.generate_private_key(curves[algorithm]), algorithm, kid)


def ed25519_key(kid: str | None = "ed") -> Key:
    return Key(Ed25519PrivateKey.generate(), "EdDSA", kid)


class Issuer:
    """The issuer: what it answers can be changed, and is counted."""

    def __init__(self) -> None:
        self.keys: list[Key] = []
        self.fetches: Counter[str] = Counter()
        self.path = "/realms/soc"
        self.status = 200
        self.discovery: dict[str, Any] = {}
        """Members that replace those of the discovery document."""
        self.key_set: bytes | None = None
        """What is answered in place of the keys."""
        self.asked = asyncio.Event()
        """Set when a question arrives."""
        self.open = asyncio.Event()
        """Answers wait for it."""
        self.open.set()
        self.secret: str | None = "s3cr%t: of tocsin"
        """What its client has to prove itself by; None for a public client."""
        self.claims: dict[str, Any] = {}
        """What ID tokens claim beside what they have to; None leaves a claim out."""
        self.answer: dict[str, str] = {}
        """What the browser brings back beside `code` and `state`, or in their place."""
        self.asked_for: dict[str, str] = {}
        """What somebody was sent here with last."""
        self.gives_refresh_tokens = False
        self.is_signed_in = True
        """Whether the person is signed in here, so that nothing has to be shown to them."""
        self.refusal: tuple[int, Any] | None = None
        """What is answered to every code."""
        self._codes: dict[str, dict[str, str]] = {}
        self._refresh_tokens: dict[str, str] = {}
        self._port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}{self.path}"

    async def start(self) -> None:
        """Answer from now on; at the same address as before, if this ran before."""
        app = web.Application()
        app.router.add_get("/{path:.*}.well-known/openid-configuration", self._discover)
        app.router.add_get("/keys", self._list_keys)
        app.router.add_get("/authorize", self._authorize)
        app.router.add_post("/token", self._exchange)
        self._server = TestServer(app, port=self._port)
        await self._server.start_server()
        self._port = self._server.port

    async def stop(self) -> None:
        """Be away: connections are refused from now on."""
        await self._server.close()

    async def _discover(self, request: web.Request) -> web.Response:
        if request.path != f"{self.path.rstrip('/')}/.well-known/openid-configuration":
            return web.Response(status=404)
        here = f"http://127.0.0.1:{self._port}"
        document = {
            "issuer": self.url,
            "jwks_uri": f"{here}/keys",
            "authorization_endpoint": f"{here}/authorize?realm=soc",
            "token_endpoint": f"{here}/token",
        } | self.discovery
        return await self._answer("discovery", json.dumps(document).encode())

    async def _list_keys(self, request: web.Request) -> web.Response:
        published = json.dumps({"keys": [key.public for key in self.keys]}).encode()
        return await self._answer("keys", published if self.key_set is None else self.key_set)

    async def _answer(self, what: str, body: bytes) -> web.Response:
        self.fetches[what] += 1
        self.asked.set()
        await self.open.wait()
        return web.Response(status=self.status, body=body, content_type="application/json")

    async def _authorize(self, request: web.Request) -> web.Response:
        """Take whoever comes for the person, and send them back with a code."""
        asked = self.asked_for = dict(request.query)
        code = secrets.token_urlsafe(16)
        self._codes[code] = asked
        answer = {"code": code, "state": asked["state"]} | self.answer
        if asked.get("prompt") == "none" and not self.is_signed_in:
            answer = {"error": "login_required", "state": asked["state"]}
        place = URL(asked["redirect_uri"]).with_query(_present(answer))
        return web.Response(status=302, headers={"Location": str(place)})

    async def _exchange(self, request: web.Request) -> web.Response:
        """Answer an ID token for a code, once, as RFC 6749 section 4.1.3 and RFC 7636 have it."""
        self.fetches["token"] += 1
        form = {name: str(value) for name, value in (await request.post()).items()}
        if self.refusal is not None:
            return web.json_response(self.refusal[1], status=self.refusal[0])
        if self._client_of(request, form) is None:
            return web.json_response({"error": "invalid_client"}, status=401)
        if form["grant_type"] == "refresh_token":
            client = self._refresh_tokens.pop(form["refresh_token"], None)
            if client is None or not self.is_signed_in:
                return web.json_response({"error": "invalid_grant"}, status=400)
            return self._give_tokens(client, {})
        asked = self._codes.pop(form["code"], None)
        if asked is None or not _belongs_to(form, asked):
            return web.json_response({"error": "invalid_grant"}, status=400)
        return self._give_tokens(asked["client_id"], {"nonce": asked["nonce"]})

    def _give_tokens(self, client: str, claims: dict[str, str]) -> web.Response:
        token = self.sign({"aud": client, **claims, **self.claims})
        given = {"id_token": token, "token_type": "Bearer", "access_token": "a"}
        if self.gives_refresh_tokens:
            given["refresh_token"] = secrets.token_urlsafe(16)
            self._refresh_tokens[given["refresh_token"]] = client  # each serves once
        return web.json_response(given)

    def sign(self, claims: dict[str, Any], **header: Any) -> str:
        """Return a token of this issuer."""
        return self.keys[0].sign(_present({"iss": self.url} | claims), **header)

    def _client_of(self, request: web.Request, form: dict[str, str]) -> str | None:
        """Return the client's id where it has proven itself, None where it has not."""
        scheme, _, encoded = request.headers.get("Authorization", "").partition(" ")
        if scheme == "Basic":
            name, _, secret = b64decode(encoded).decode().partition(":")
            return name if unquote_plus(secret) == self.secret else None
        return form.get("client_id") if form.get("client_secret") == self.secret else None


def _belongs_to(form: dict[str, str], asked: dict[str, str]) -> bool:
    """Return whether whoever has the code has asked for it."""
    challenge = base64url_encode(sha256(form["code_verifier"].encode()).digest()).decode()
    return (
        form["grant_type"] == "authorization_code"
        and form["redirect_uri"] == asked["redirect_uri"]
        and (challenge, "S256") == (asked["code_challenge"], asked["code_challenge_method"])
    )
