"""A real OpenID Connect issuer on loopback, as far as its tokens and their keys go."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from jwt import PyJWS
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm
from jwt.utils import base64url_encode

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
        self._port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}{self.path}"

    async def start(self) -> None:
        """Answer from now on; at the same address as before, if this ran before."""
        app = web.Application()
        app.router.add_get("/{path:.*}.well-known/openid-configuration", self._discover)
        app.router.add_get("/keys", self._list_keys)
        self._server = TestServer(app, port=self._port)
        await self._server.start_server()
        self._port = self._server.port

    async def stop(self) -> None:
        """Be away: connections are refused from now on."""
        await self._server.close()

    async def _discover(self, request: web.Request) -> web.Response:
        if request.path != f"{self.path.rstrip('/')}/.well-known/openid-configuration":
            return web.Response(status=404)
        jwks_uri = f"http://127.0.0.1:{self._port}/keys"
        document = {"issuer": self.url, "jwks_uri": jwks_uri} | self.discovery
        return await self._answer("discovery", json.dumps(document).encode())

    async def _list_keys(self, request: web.Request) -> web.Response:
        published = json.dumps({"keys": [key.public for key in self.keys]}).encode()
        return await self._answer("keys", published if self.key_set is None else self.key_set)

    async def _answer(self, what: str, body: bytes) -> web.Response:
        self.fetches[what] += 1
        self.asked.set()
        await self.open.wait()
        return web.Response(status=self.status, body=body, content_type="application/json")
