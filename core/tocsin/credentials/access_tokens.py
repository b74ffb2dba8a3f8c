"""Access tokens of API clients: JWTs in the profile of RFC 9068."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

import jwt
from jwt.algorithms import RSAAlgorithm
from sqlalchemy import Connection, bindparam, exists, select
from ulid import ULID

from tocsin.clock import Clock
from tocsin.credentials.digest_cache import DigestCache
from tocsin.credentials.signing_keys import ALGORITHMS, PublicKey, Purpose, SigningKeys
from tocsin.credentials.tokens import TokenError, read_header, verify_claims
from tocsin.credentials.vault import Vault
from tocsin.settings import Settings
from tocsin.store import build_insert
from tocsin.store.tables import api_clients, revoked_tokens, signing_keys

TYPE = "at+jwt"
_TYPES = {TYPE, f"application/{TYPE}"}  # RFC 9068 section 4
_CLAIMS = ("iss", "aud", "sub", "client_id", "scope", "iat", "exp", "jti")


@dataclass(frozen=True, slots=True)
class AccessToken:
    """Content of a verified token."""

    client_id: str
    scopes: tuple[str, ...]
    id: str
    key_id: str
    generation: int
    """Token generation of the client at the time of issue; the token's ID ends with it."""
    issued_at: datetime
    expires_at: datetime


class AccessTokens:
    """Issues access tokens, verifies and revokes them."""

    def __init__(
        self, vault: Vault, clock: Clock, *, issuer: str, audience: str, lifetime: timedelta
    ) -> None:
        self.lifetime = lifetime
        self._keys = SigningKeys(Purpose.ACCESS, vault)
        self._clock = clock
        self._issuer = issuer
        self._audience = audience
        # The content of a verified token does not change until it expires
        self._verified: DigestCache[AccessToken] = DigestCache(clock, lifetime=lifetime)

    def issue(self, connection: Connection, client_id: str, scopes: tuple[str, ...]) -> str:
        """Return a new token for an existing client; call this in a write transaction."""
        # Locked until the token is issued, so that no revocation happens in between
        generation = connection.execute(_generation, {"client_id": client_id}).scalar_one()
        now = self._clock.now()
        key = self._keys.obtain_signing_key(connection, now)
        issued_at = int(now.timestamp())
        claims = {
            "iss": self._issuer,
            "sub": client_id,
            "aud": self._audience,
            "client_id": client_id,
            "scope": " ".join(scopes),
            "iat": issued_at,
            "exp": issued_at + int(self.lifetime.total_seconds()),
            "jti": f"{ULID()}-{generation}",
        }
        headers = {"typ": TYPE, "kid": key.id}
        token = jwt.encode(claims, key.private_key, algorithm=key.algorithm, headers=headers)
        self._verified.add(self._digest(token), _read(claims, key.id))
        return token

    def prepare(self, connection: Connection) -> None:
        """Create the first or next signing key when it is due, and delete expired revocations.

        Call this in a write transaction, at start and from time to time.
        """
        now = self._clock.now()
        self._keys.obtain_signing_key(connection, now)
        self._keys.rotate(connection, now, token_life=self.lifetime)
        connection.execute(revoked_tokens.delete().where(revoked_tokens.c.expires_at <= now))

    def replace_keys(self, connection: Connection) -> None:
        """Revoke all tokens and create a new key; call this in a write transaction."""
        self._keys.revoke_all(connection)
        self._keys.obtain_signing_key(connection, self._clock.now())

    def is_known(self, token: str) -> bool:
        """Return whether this process has verified this token before."""
        return self._verified.recall(self._digest(token)) is not None

    def verify(self, connection: Connection, token: str) -> AccessToken:
        """Return the content of a valid token; raises TokenError, also if it was revoked."""
        digest = self._digest(token)
        verified = self._verified.recall(digest)
        if verified is None:
            verified = self._check(connection, token)
            self._verified.add(digest, verified)
        if not _is_unrevoked(connection, verified):
            raise TokenError
        if self._clock.now() >= verified.expires_at:
            raise TokenError(expired=True)
        return verified

    def describe(self, token: AccessToken) -> dict[str, Any]:
        """Return the introspection response for a valid token (RFC 7662 section 2.2)."""
        return {
            "active": True,
            "scope": " ".join(token.scopes),
            "client_id": token.client_id,
            "token_type": "Bearer",
            "exp": int(token.expires_at.timestamp()),
            "iat": int(token.issued_at.timestamp()),
            "sub": token.client_id,
            "aud": self._audience,
            "iss": self._issuer,
            "jti": token.id,
        }

    def load_published_keys(self, connection: Connection) -> list[dict[str, Any]]:
        """Return the public keys as members of a JWK set (RFC 7517)."""
        return [_jwk(key) for key in self._keys.load_published_keys(connection, self._clock.now())]

    def _check(self, connection: Connection, token: str) -> AccessToken:
        header = read_header(token)
        if not is_access_token(header):
            raise TokenError
        key = self._keys.load_public_key(connection, str(header.get("kid")), self._clock.now())
        if key is None:
            raise TokenError
        claims = verify_claims(
            token, key, issuer=self._issuer, audience=self._audience, required=_CLAIMS
        )
        return _read(claims, key.id)

    def _digest(self, token: str) -> bytes:
        return self._verified.digest("token", token)


def _read(claims: dict[str, Any], key_id: str) -> AccessToken:
    return AccessToken(
        client_id=claims["client_id"],
        scopes=tuple(claims["scope"].split()),
        id=claims["jti"],
        key_id=key_id,
        generation=int(claims["jti"].partition("-")[2]),
        issued_at=datetime.fromtimestamp(claims["iat"], tz=UTC),
        expires_at=datetime.fromtimestamp(claims["exp"], tz=UTC),
    )


def open_tokens(settings: Settings, vault: Vault, clock: Clock) -> AccessTokens:
    """Return the issuer and verifier of access tokens for these settings."""
    return AccessTokens(
        vault,
        clock,
        issuer=settings.issuer_url,
        audience=settings.public_url,
        lifetime=timedelta(seconds=settings.access_token_seconds),
    )


def revoke_token(connection: Connection, token: AccessToken) -> None:
    """Revoke this token (RFC 7009); call this in a write transaction."""
    row = {"jti": token.id, "expires_at": token.expires_at}
    statement = build_insert(connection, revoked_tokens).values(row)
    connection.execute(statement.on_conflict_do_nothing())


def is_access_token(header: dict[str, Any]) -> bool:
    """Return whether a header is that of an access token (RFC 9068 section 4)."""
    type_ = header.get("typ")
    return (
        isinstance(type_, str)
        and type_.lower() in _TYPES
        and header.get("alg") == ALGORITHMS[Purpose.ACCESS]
    )


_generation = (
    select(api_clients.c.token_generation)
    .where(api_clients.c.client_id == bindparam("client_id"))
    .with_for_update(read=True)
)
_validity = select(
    api_clients.c.token_generation,
    exists().where(revoked_tokens.c.jti == bindparam("jti")).label("revoked"),
    exists().where(signing_keys.c.id == bindparam("key_id")).label("has_key"),
).where(api_clients.c.client_id == bindparam("client_id"))


def _is_unrevoked(connection: Connection, token: AccessToken) -> bool:
    """Return whether the token was not revoked; disabling its client does not revoke it."""
    values = {"client_id": token.client_id, "jti": token.id, "key_id": token.key_id}
    row = connection.execute(_validity, values).one_or_none()
    if row is None or row.revoked or not row.has_key:
        return False
    return bool(row.token_generation == token.generation)


@lru_cache(maxsize=8)
def _jwk(key: PublicKey) -> dict[str, Any]:
    algorithm = RSAAlgorithm(RSAAlgorithm.SHA256)
    members = algorithm.to_jwk(algorithm.prepare_key(key.pem), as_dict=True)
    return {"kty": "RSA", "use": "sig", "alg": key.algorithm, "kid": key.id} | {
        name: members[name] for name in ("n", "e")
    }
