"""From what a caller presents to who the caller is.

Presenting costs no I/O. Identifying is a plain function over a connection, so that it can run in
the same read as the work it guards. Only where a secret was not proven before does it raise
`Unproven`; then `prove` runs Argon2id, off that connection, and identifying is tried again.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlalchemy import Connection

from tocsin.clock import Clock, isoformat
from tocsin.credentials.admins import Admins, TokenError, is_admin_token
from tocsin.credentials.api_keys import KeyStatus, load_api_key
from tocsin.credentials.hashing import Hasher
from tocsin.credentials.key_format import DEFAULT_PREFIX, KeyValue, parse
from tocsin.errors import TocsinError


@dataclass(frozen=True, slots=True)
class Principal:
    """Who is calling, and what they may do."""

    name: str
    scopes: tuple[str, ...] = ()
    is_admin: bool = False


@dataclass(frozen=True, slots=True)
class AdminToken:
    """A bearer token that looks like an admin's."""

    text: str = field(repr=False)


Credential = KeyValue | AdminToken


class AuthenticationError(TocsinError):
    """The credential does not authenticate; the text is for whoever presented it."""


class Unproven(TocsinError):  # noqa: N818 - a question, not an error
    """Whether the secret matches `stored` has to be found out first."""

    def __init__(self, stored: str) -> None:
        super().__init__("the secret is not proven yet")
        self.stored = stored


class Authenticator:
    """Tells who presented a credential."""

    def __init__(
        self, hasher: Hasher, admins: Admins, clock: Clock, *, key_prefix: str = DEFAULT_PREFIX
    ) -> None:
        self._hasher = hasher
        self._admins = admins
        self._clock = clock
        self._key_prefix = key_prefix

    def present_key(self, text: str) -> KeyValue:
        """Return the parts of an API key; raises AuthenticationError where it is malformed."""
        value = parse(text, self._key_prefix)
        if value is None:
            raise AuthenticationError("The API key is malformed.")
        return value

    def present_token(self, text: str) -> AdminToken:
        """Return a bearer token; raises AuthenticationError where it is not one of ours."""
        if not is_admin_token(text):
            raise AuthenticationError("The bearer token is not valid.")
        return AdminToken(text)

    def identify(
        self, connection: Connection, credential: Credential, proven: str | None = None
    ) -> Principal:
        """Return who presented it, by the record as it is now; AuthenticationError or Unproven.

        `proven` is the stored hash that this very credential was proven against, if it was.
        """
        if isinstance(credential, AdminToken):
            return self._identify_admin(connection, credential)
        key = load_api_key(connection, credential.key_id)
        if key is None:
            raise AuthenticationError(_UNKNOWN)
        if key.secret_hash != proven and not self._hasher.remembers(
            credential.key_id, credential.secret, key.secret_hash
        ):
            raise Unproven(key.secret_hash)
        if key.status(self._clock.now()) is KeyStatus.EXPIRED:
            raise AuthenticationError(f"The API key expired at {isoformat(key.expires_at)}.")
        return Principal(key.name, key.scopes)

    async def prove(self, credential: Credential, stored: str) -> None:
        """Return where the secret matches the stored hash; raises AuthenticationError elsewhere."""
        if not isinstance(credential, KeyValue) or not await self._hasher.verify(
            credential.key_id, credential.secret, stored
        ):
            raise AuthenticationError(_UNKNOWN)

    def _identify_admin(self, connection: Connection, token: AdminToken) -> Principal:
        try:
            return Principal(self._admins.verify(connection, token.text), is_admin=True)
        except TokenError as error:
            words = "has expired" if error.expired else "is not valid"
            raise AuthenticationError(f"The bearer token {words}.") from None


# One text for both, so that nobody can find out which identifiers exist.
_UNKNOWN = "The API key is not valid."
