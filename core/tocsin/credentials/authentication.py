"""Authentication of API keys, client secrets and bearer tokens.

Presenting a credential does no I/O. Identifying is a plain function over a connection, so that it
runs in the same read transaction as the work that it guards. For a secret that was not verified
before, it raises `ProofRequired`; the caller then runs `prove` (Argon2id) without the connection
and identifies again.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from sqlalchemy import Connection

from tocsin.clock import Clock, isoformat
from tocsin.credentials.access_tokens import AccessTokens, is_access_token
from tocsin.credentials.admins import Admins, is_admin_token
from tocsin.credentials.api_clients import ClientSecret, ClientStatus, load_api_client
from tocsin.credentials.api_keys import KeyStatus, KeyValue, load_api_key, parse_key
from tocsin.credentials.digest_cache import DigestCache
from tocsin.credentials.hashing import Hasher
from tocsin.credentials.oidc_tokens import OidcAdmin, OidcIssuer
from tocsin.credentials.records import Principal, Usage
from tocsin.credentials.tokens import TokenError, read_header
from tocsin.errors import TocsinError


@dataclass(frozen=True, slots=True)
class AdminToken:
    """A bearer token with the header of an admin token."""

    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class PresentedAccessToken:
    """A bearer token with the header of an access token."""

    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class IssuerToken:
    """A bearer token that names the OpenID Connect issuer."""

    text: str = field(repr=False)


Secret = KeyValue | ClientSecret
Credential = Secret | AdminToken | PresentedAccessToken | IssuerToken | OidcAdmin


class AuthenticationError(TocsinError):
    """The credential does not authenticate; the text is for the caller."""


class ProofRequired(TocsinError):  # noqa: N818 - a request, not an error
    """The secret must first be verified against the stored hashes."""

    def __init__(self, hashes: Collection[str]) -> None:
        super().__init__("the secret was not verified yet")
        self.hashes = hashes


class Authenticator:
    """Authenticates callers by their credentials."""

    def __init__(
        self,
        *,
        hasher: Hasher,
        admins: Admins,
        access_tokens: AccessTokens,
        usage: Usage,
        clock: Clock,
        issuer: OidcIssuer | None = None,
    ) -> None:
        self._hasher = hasher
        self._admins = admins
        self._access_tokens = access_tokens
        self._usage = usage
        self._clock = clock
        self._issuer = issuer
        self._admitted: DigestCache[str] = DigestCache(clock)

    def decode_key(self, text: str) -> KeyValue:
        """Return the parts of an API key; raises AuthenticationError if it is malformed."""
        value = parse_key(text)
        if value is None:
            is_token = bool(read_header(text))
            raise AuthenticationError(_TOKEN_AS_KEY if is_token else _MALFORMED_KEY)
        return value

    def decode_token(self, text: str) -> Credential:
        """Return a bearer token by its type; raises AuthenticationError for an unknown type."""
        if self._access_tokens.is_known(text):
            return PresentedAccessToken(text)
        header = read_header(text)
        if self._issuer is not None and self._issuer.is_issuer_of(text):
            return IssuerToken(text)
        if is_admin_token(header):
            return AdminToken(text)
        if is_access_token(header):
            return PresentedAccessToken(text)
        raise AuthenticationError(_KEY_AS_TOKEN if parse_key(text) else _INVALID_TOKEN)

    def was_verified(self, credential: Credential) -> bool:
        """Return whether this credential was valid in this process before; does no I/O.

        It may be invalid by now, but it was not guessed.
        """
        match credential:
            case KeyValue() | ClientSecret():
                return self._hasher.recall(credential.identifier, credential.secret) is not None
            case PresentedAccessToken():
                return self._access_tokens.is_known(credential.text)
            case AdminToken() | IssuerToken():
                return self._admitted.recall(self._digest(credential)) is not None
            case _:
                return False

    def is_being_proven(self, secret: Secret) -> bool:
        """Return whether Argon2id is running for this secret."""
        return self._hasher.is_verifying(secret.identifier, secret.secret)

    async def resolve(self, credential: Credential) -> Credential:
        """Fetch what `identify` needs, and return the credential for it.

        Raises AuthenticationError and IssuerUnavailable.
        """
        if not isinstance(credential, IssuerToken) or self._issuer is None:
            return credential
        try:
            admin = await self._issuer.verify(credential.text)
        except TokenError as error:
            raise _refuse_token(error) from None
        self._admitted.add(self._digest(credential), admin.subject)
        return admin

    def identify(
        self, connection: Connection, credential: Credential, proven: str | None = None
    ) -> Principal:
        """Return the caller by the stored record; raises AuthenticationError or ProofRequired.

        `proven` is the stored hash that `prove` returned for this credential.
        """
        match credential:
            case KeyValue():
                return self._identify_key(connection, credential, proven)
            case ClientSecret():
                return self._identify_client(connection, credential, proven)
            case OidcAdmin():
                if self._clock.now().timestamp() >= credential.expires_at:
                    raise _refuse_token(TokenError(expired=True))
                name = credential.subject
                return Principal(f"oidc:{name}", name, is_admin=credential.is_admin)
            case AdminToken():
                return self._identify_admin(connection, credential)
            case PresentedAccessToken():
                return self._identify_access_token(connection, credential)
            case IssuerToken():  # no issuer is configured
                raise AuthenticationError(_INVALID_TOKEN)

    async def prove(self, secret: Secret, hashes: Collection[str]) -> str:
        """Return the hash that the secret matches; raises AuthenticationError and BusyError."""
        for stored in hashes:
            if await self._hasher.verify(secret.identifier, secret.secret, stored):
                return stored
        raise AuthenticationError(_invalid_credential(secret))

    def _identify_key(
        self, connection: Connection, value: KeyValue, proven: str | None
    ) -> Principal:
        key = load_api_key(connection, value.identifier)
        if key is None or key.prefix != value.prefix:
            raise AuthenticationError(_invalid_credential(value))
        now = self._clock.now()
        self._require_proof(value, key.hashes(now), proven)
        match key.status(now):
            case KeyStatus.DISABLED:
                raise AuthenticationError("The API key is disabled.")
            case KeyStatus.EXPIRED:
                raise AuthenticationError(f"The API key expired at {isoformat(key.expires_at)}.")
        self._usage.record("key", key.key_id)
        return key.principal

    def _identify_client(
        self, connection: Connection, presented: ClientSecret, proven: str | None
    ) -> Principal:
        client = load_api_client(connection, presented.identifier)
        if client is None:
            raise AuthenticationError(_invalid_credential(presented))
        self._require_proof(presented, (client.secret_hash,), proven)
        if client.status is ClientStatus.DISABLED:
            raise AuthenticationError("The API client is disabled.")
        self._usage.record("client", client.client_id)
        return Principal(f"client:{client.client_id}", client.name, client.scopes)

    def _identify_access_token(
        self, connection: Connection, token: PresentedAccessToken
    ) -> Principal:
        try:
            claims = self._access_tokens.verify(connection, token.text)
        except TokenError as error:
            raise _refuse_token(error) from None
        self._usage.record("client", claims.client_id)
        return Principal(f"client:{claims.client_id}", claims.client_id, claims.scopes)

    def _identify_admin(self, connection: Connection, token: AdminToken) -> Principal:
        try:
            name = self._admins.verify(connection, token.text)
        except TokenError as error:
            raise _refuse_token(error) from None
        self._admitted.add(self._digest(token), name)
        return Principal(f"admin:{name}", name, is_admin=True)

    def _digest(self, token: AdminToken | IssuerToken) -> bytes:
        return self._admitted.digest("token", token.text)

    def _require_proof(self, secret: Secret, hashes: Collection[str], proven: str | None) -> None:
        if proven in hashes or self._hasher.recall(secret.identifier, secret.secret) in hashes:
            return
        if proven is not None:  # the hash was replaced in the meantime
            raise AuthenticationError(_invalid_credential(secret))
        raise ProofRequired(hashes)


_MALFORMED_KEY = (
    "The API key is malformed: its checksum does not match. Check for typos or missing characters."
)
_TOKEN_AS_KEY = "This is a bearer token. Send it as Authorization: Bearer."  # noqa: S105 - a sentence
_KEY_AS_TOKEN = "This is an API key. Send it in the X-API-Key header."  # noqa: S105 - a sentence
_INVALID_TOKEN = "The bearer token is not valid."  # noqa: S105 - a sentence


def _refuse_token(error: TokenError) -> AuthenticationError:
    return AuthenticationError("The bearer token has expired." if error.expired else _INVALID_TOKEN)


def _invalid_credential(secret: Secret) -> str:
    """Return the same text for unknown and wrong credentials, to hide which ones exist."""
    if isinstance(secret, KeyValue):
        return "The API key is not valid."
    return "The client ID or secret is not valid."
