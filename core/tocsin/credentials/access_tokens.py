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
from tocsin.credentials.signing_keys import ALGORITHMS, PublicKey, Purpose, SigningKeys
from tocsin.credentials.tokens import TokenError, read_header, verify_claims
from tocsin.credentials.vault import Vault
from tocsin.credentials.verification_cache import VerificationCache
from tocsin.settings import Settings
from tocsin.store.statements import build_insert
from tocsin.store.tables import api_clients, revoked_tokens, signing_keys

TYPE = "at+jwt"
_TYPES = {TYPE, f"application/{TYPE}"}  # RFC 9068 section 4
_CLAIMS = ("iss", "aud", "sub", "client_id", "scope", "iat", "exp", "jti")


@dataclass(frozen=True, slots=True)
class AccessToken:
    """What a verified token says."""

    client_id: str
    scopes: tuple[str, ...]
    id: str
    key_id: str
    generation: int
    """That of its client when it was issued; its id ends with it."""
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
        # A token that was verified says the same until it expires
        self._verified: VerificationCache[AccessToken] = VerificationCache(clock, lifetime=lifetime)

    def issue(self, connection: Connection, client_id: str, scopes: tuple[str, ...]) -> str:
        """Return a token; to be called in a write, and for a client that there is."""
        # Held until the token is issued, so that no revocation comes between
        generation = connection.execute(_generation, {"client_id": client_id}).scalar_one()
        now = self._clock.now()
        key = self._keys.obtain(connection, now)
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
        """Make the first key or, in time, the next one, and forget what has expired.

        To be called in a write, at start and now and then.
        """
        now = self._clock.now()
        self._keys.obtain(connection, now)
        self._keys.rotate(connection, now, token_life=self.lifetime)
        connection.execute(revoked_tokens.delete().where(revoked_tokens.c.expires_at <= now))

    def replace_keys(self, connection: Connection) -> None:
        """Make every token void, and a new key; to be called in a write."""
        self._keys.revoke_all(connection)
        self._keys.obtain(connection, self._clock.now())

    def is_known(self, token: str) -> bool:
        """Return whether this very token was verified before by this process."""
        return self._verified.recall(self._digest(token)) is not None

    def verify(self, connection: Connection, token: str) -> AccessToken:
        """Return what the token says, if it is valid and was not revoked; raises TokenError."""
        digest = self._digest(token)
        verified = self._verified.recall(digest)
        if verified is None:
            verified = self._check(connection, token)
            self._verified.add(digest, verified)
        if not _stands(connection, verified):
            raise TokenError
        if self._clock.now() >= verified.expires_at:
            raise TokenError(expired=True)
        return verified

    def describe(self, token: AccessToken) -> dict[str, Any]:
        """Return what introspection says of a valid token (RFC 7662 section 2.2)."""
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

    def published_keys(self, connection: Connection) -> list[dict[str, Any]]:
        """Return the keys that verify tokens, as members of a JWK set (RFC 7517)."""
        return [_jwk(key) for key in self._keys.published(connection, self._clock.now())]

    def _check(self, connection: Connection, token: str) -> AccessToken:
        header = read_header(token)
        if not is_access_token(header):
            raise TokenError
        key = self._keys.public_key(connection, str(header.get("kid")), self._clock.now())
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
    """Return the access tokens of the service with these settings."""
    return AccessTokens(
        vault,
        clock,
        issuer=settings.issuer_url,
        audience=settings.public_url,
        lifetime=timedelta(seconds=settings.access_token_seconds),
    )


def revoke_token(connection: Connection, token: AccessToken) -> None:
    """End this token at once (RFC 7009); to be called in a write."""
    row = {"jti": token.id, "expires_at": token.expires_at}
    statement = build_insert(connection, revoked_tokens).values(row)
    connection.execute(statement.on_conflict_do_nothing())


def is_access_token(header: dict[str, Any]) -> bool:
    """Return whether a token with this header calls itself one (RFC 9068 section 4)."""
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
_standing = select(
    api_clients.c.token_generation,
    exists().where(revoked_tokens.c.jti == bindparam("jti")).label("revoked"),
    exists().where(signing_keys.c.id == bindparam("key_id")).label("key_is_there"),
).where(api_clients.c.client_id == bindparam("client_id"))


def _stands(connection: Connection, token: AccessToken) -> bool:
    """Return whether nobody has ended the token; that its client is disabled does not end it."""
    values = {"client_id": token.client_id, "jti": token.id, "key_id": token.key_id}
    row = connection.execute(_standing, values).one_or_none()
    if row is None or row.revoked or not row.key_is_there:
        return False
    return bool(row.token_generation == token.generation)


@lru_cache(maxsize=8)
def _jwk(key: PublicKey) -> dict[str, Any]:
    algorithm = RSAAlgorithm(RSAAlgorithm.SHA256)
    members = algorithm.to_jwk(algorithm.prepare_key(key.pem), as_dict=True)
    return {"kty": "RSA", "use": "sig", "alg": key.algorithm, "kid": key.id} | {
        name: members[name] for name in ("n", "e")
    }
