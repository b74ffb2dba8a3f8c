"""Challenges of WebAuthn ceremonies: encrypted in a cookie, and stored once they are signed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from hashlib import sha256

import orjson
from cryptography.fernet import InvalidToken, MultiFernet
from sqlalchemy import Connection, delete

from tocsin.clock import Clock
from tocsin.store import build_insert
from tocsin.store.tables import used_challenges

CEREMONY_KEY_PURPOSE = "passkey ceremony"
"""Purpose of the derived key."""
LIFETIME = timedelta(minutes=5)
"""Time that a person has to use an authenticator."""
_KEPT = 2 * LIFETIME
"""Time for which a use is stored: nodes whose clocks differ open a challenge for longer."""
_LONGEST = 4_096  # maximum size of a cookie (RFC 6265 section 6.1)


@dataclass(frozen=True, slots=True)
class Challenge:
    """A challenge that one browser has received."""

    text: str
    """Random bytes in base64url."""
    person_id: str | None
    """The person who creates a passkey; None to sign in."""


@dataclass(frozen=True, slots=True)
class SignedChallenge:
    """A challenge that a passkey has signed, which is valid once."""

    digest: str
    expires_at: datetime


class SealedChallenges:
    """Encrypts challenges for browser cookies, so that nobody can fill the database."""

    def __init__(self, open_cipher: Callable[[], MultiFernet], clock: Clock) -> None:
        """Create the challenges of a cluster, whose nodes share the keys of the cipher."""
        self._open_cipher = open_cipher
        self._clock = clock

    def seal(self, challenge: Challenge) -> str:
        """Return the encrypted form."""
        content = orjson.dumps(asdict(challenge))
        return self._open_cipher().encrypt_at_time(content, self._now()).decode()

    def open(self, sealed: str) -> Challenge | None:
        """Return the challenge, None if it is too old or was not sealed here."""
        if len(sealed) > _LONGEST or not sealed.isascii():
            return None
        try:
            seconds = int(LIFETIME.total_seconds())
            content = self._open_cipher().decrypt_at_time(sealed, seconds, self._now())
        except InvalidToken:
            return None
        return Challenge(**orjson.loads(content))

    def sign_off(self, challenge: Challenge) -> SignedChallenge:
        """Return what is stored of a signed challenge."""
        digest = sha256(challenge.text.encode()).hexdigest()
        return SignedChallenge(digest, self._clock.now() + _KEPT)

    def _now(self) -> int:
        return int(self._clock.now().timestamp())


def use_challenge(connection: Connection, challenge: SignedChallenge, now: datetime) -> bool:
    """Store the use of a challenge, and return whether it is the first."""
    connection.execute(delete(used_challenges).where(used_challenges.c.expires_at <= now))
    row = {"digest": challenge.digest, "expires_at": challenge.expires_at}
    statement = build_insert(connection, used_challenges).values(row).on_conflict_do_nothing()
    return bool(connection.execute(statement).rowcount)
