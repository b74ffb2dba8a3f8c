"""Sign-ins under way: what the browser that began one keeps until it comes back from the issuer."""

from __future__ import annotations

import hmac
import secrets
from base64 import urlsafe_b64encode
from dataclasses import asdict, dataclass
from datetime import timedelta
from hashlib import sha256

import orjson
from cryptography.fernet import Fernet, InvalidToken

from tocsin.clock import Clock
from tocsin.credentials.memo import VerificationCache

SIGN_IN_KEY_PURPOSE = "console sign-in"
"""The purpose for which the key is derived."""
LIFETIME = timedelta(minutes=10)
"""How long somebody may take at the issuer."""
LONGEST_PLACE = 1_500
_LONGEST = 4_096  # what browsers keep of a cookie (RFC 6265 section 6.1)


@dataclass(frozen=True, slots=True)
class SignInAttempt:
    """A sign-in that was begun in a browser."""

    state: str
    """What tells the answer to it from others (RFC 6749 section 10.12)."""
    nonce: str
    """What its ID token has to name (OpenID Connect Core 1.0 section 3.1.2.1)."""
    verifier: str
    """What proves that the code is exchanged by whoever asked for it (RFC 7636)."""
    place: str
    """The page that was asked for."""

    @property
    def challenge(self) -> str:
        """What the issuer is told of the verifier (RFC 7636 section 4.2, S256)."""
        digest = sha256(self.verifier.encode()).digest()
        return urlsafe_b64encode(digest).rstrip(b"=").decode()


class SignInAttempts:
    """Seals attempts for browsers to keep, so that nothing of them has to be kept here."""

    def __init__(self, key: bytes, clock: Clock) -> None:
        """`key` is 32 bytes that all nodes share."""
        self._fernet = Fernet(urlsafe_b64encode(key))
        self._clock = clock
        self._used = VerificationCache[bool](clock, lifetime=LIFETIME)

    def begin(self, place: str) -> tuple[SignInAttempt, str]:
        """Return a new attempt, and how its browser keeps it."""
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        wanted = place if len(place) <= LONGEST_PLACE else "/"
        attempt = SignInAttempt(state, nonce, verifier, wanted)
        sealed = self._fernet.encrypt_at_time(orjson.dumps(asdict(attempt)), self._now())
        return attempt, sealed.decode()

    def take(self, sealed: str, state: str) -> SignInAttempt | None:
        """Return the attempt that is answered with `state`, once.

        None where this browser began none, or one with another state, or too long ago, or where
        it has been answered here before. That other nodes do not know; there, the issuer takes
        no code twice (RFC 6749 section 4.1.2).
        """
        attempt = self._open(sealed)
        if attempt is None or not hmac.compare_digest(attempt.state.encode(), _bytes(state)):
            return None
        digest = self._used.digest("state", attempt.state)
        if self._used.recall(digest):
            return None
        self._used.add(digest, fact=True)
        return attempt

    def _open(self, sealed: str) -> SignInAttempt | None:
        if len(sealed) > _LONGEST:
            return None
        try:
            seconds = int(LIFETIME.total_seconds())
            found = self._fernet.decrypt_at_time(_bytes(sealed), seconds, self._now())
        except InvalidToken:
            return None
        return SignInAttempt(**orjson.loads(found))

    def _now(self) -> int:
        return int(self._clock.now().timestamp())


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
