"""WebAuthn ceremonies: the creation of a passkey and its use.

Web Authentication Level 3, sections 7.1 and 7.2. The library is imported when the first ceremony
begins, because most installations have none.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, cast

import orjson
from yarl import URL

from tocsin.clock import Clock
from tocsin.credentials.authentication import AuthenticationError
from tocsin.credentials.passkey_challenges import (
    CEREMONY_KEY_PURPOSE,
    LIFETIME,
    Challenge,
    SealedChallenges,
    SignedChallenge,
)
from tocsin.credentials.people import Person
from tocsin.credentials.vault import Vault
from tocsin.errors import ConflictError

if TYPE_CHECKING:
    from fido2.server import Fido2Server
    from fido2.webauthn import AttestedCredentialData

    from tocsin.credentials.passkeys import Passkey

ALGORITHMS = (-8, -7, -257)
"""EdDSA, ES256 and RS256 (Web Authentication Level 3, section 5.4)."""
_LARGEST_ANSWER = 16_384
_LARGEST_KEY = 1_024  # of RSA with 4096 bits: 530 bytes
_NOT_STARTED = (
    "This passkey request was not started in this browser, or it took longer than "
    f"{LIFETIME.total_seconds() / 60:.0f} minutes. Try again."
)
_INVALID = "The browser's response is not valid for this console. Try again."


class PasskeysUnavailable(ConflictError):  # noqa: N818 - a state of the configuration
    """The base URL is not one at which browsers use passkeys."""


@dataclass(frozen=True, slots=True)
class NewCredential:
    """A verified credential that an authenticator has created."""

    credential_id: str
    public_key: bytes
    sign_count: int
    challenge: SignedChallenge


@dataclass(frozen=True, slots=True)
class PasskeyUse:
    """A verified signature by a passkey."""

    passkey_id: str
    sign_count: int
    challenge: SignedChallenge


@dataclass(frozen=True, slots=True)
class StartedCeremony:
    """A ceremony that a browser is to finish."""

    options: Mapping[str, Any]
    """For `navigator.credentials`, with binary members in base64url."""
    sealed: str
    """For the browser's cookie, so that the server stores nothing."""


class PasskeyCeremonies:
    """Begins ceremonies at the console's address, and verifies their responses."""

    def __init__(self, public_url: str, port: int, challenges: SealedChallenges) -> None:
        url = URL(public_url)
        self._rp_id = url.host or ""
        self.origin = str(url.origin())
        """The origin of the console's pages."""
        self._fault = find_passkey_fault(public_url, port)
        self._challenges = challenges

    def require_available(self) -> None:
        """Raise PasskeysUnavailable, with the remedy, if browsers refuse passkeys here."""
        if self._fault is not None:
            raise PasskeysUnavailable(self._fault)

    def begin_creation(self, person: Person, known: Sequence[Passkey]) -> StartedCeremony:
        """Begin the creation of a passkey, on an authenticator with none of the known ones."""
        server = self._open_server()
        from fido2.webauthn import (
            PublicKeyCredentialDescriptor,
            PublicKeyCredentialType,
            PublicKeyCredentialUserEntity,
            ResidentKeyRequirement,
            UserVerificationRequirement,
        )

        public_key = PublicKeyCredentialType.PUBLIC_KEY
        options, state = server.register_begin(
            PublicKeyCredentialUserEntity(
                id=person.id.encode(), name=person.name, display_name=person.name
            ),
            [
                PublicKeyCredentialDescriptor(type=public_key, id=_decode(passkey.credential_id))
                for passkey in known
            ],
            resident_key_requirement=ResidentKeyRequirement.REQUIRED,
            user_verification=UserVerificationRequirement.REQUIRED,
        )
        return self._start(dict(options), Challenge(state["challenge"], person.id))

    def begin_sign_in(self) -> StartedCeremony:
        """Begin a sign-in with any passkey for this console."""
        server = self._open_server()
        from fido2.webauthn import UserVerificationRequirement

        options, state = server.authenticate_begin(
            user_verification=UserVerificationRequirement.REQUIRED
        )
        return self._start(dict(options), Challenge(state["challenge"], None))

    def finish_creation(self, sealed: str, answer: str, person: Person) -> NewCredential:
        """Return the new credential of a person; raises AuthenticationError.

        Attestation is not asked for: any authenticator that verifies the user is accepted.
        """
        challenge = self._challenges.open(sealed)
        if challenge is None or challenge.person_id != person.id:
            raise AuthenticationError(_NOT_STARTED)
        server, response = self._open_server(), _parse(answer)
        try:
            data = server.register_complete(_describe_state(challenge), response)
            created = data.credential_data
            key = _encode_key(created)
            _require_own_page(response)
            is_accepted = (
                created is not None
                and len(key) <= _LARGEST_KEY
                and created.public_key.ALGORITHM in ALGORITHMS
                and created.credential_id == _decode(response["rawId"])
            )
        except Exception as error:
            raise AuthenticationError(_INVALID) from error
        if created is None or not is_accepted:
            raise AuthenticationError(_INVALID)
        return NewCredential(
            _encode(created.credential_id), key, data.counter, self._challenges.sign_off(challenge)
        )

    def finish_sign_in(self, sealed: str, answer: str, passkey: Passkey | None) -> PasskeyUse:
        """Return the use of the passkey that `read_credential_id` names.

        Raises AuthenticationError; without a passkey, too.
        """
        challenge = self._challenges.open(sealed)
        if challenge is None or challenge.person_id is not None:
            raise AuthenticationError(_NOT_STARTED)
        if passkey is None:
            raise AuthenticationError(
                "This passkey is not registered here, or it was deleted. Use another one, or ask "
                "an admin for a link to create a passkey."
            )
        server, response = self._open_server(), _parse(answer)
        from fido2.webauthn import AuthenticationResponse

        try:
            credential = _restore_credential(passkey)
            server.authenticate_complete(_describe_state(challenge), [credential], response)
            _require_own_page(response)
            signed = AuthenticationResponse.from_dict(response).response
            is_owner = signed.user_handle == passkey.person_id.encode()  # section 7.2, step 6
        except Exception as error:
            raise AuthenticationError(_INVALID) from error
        if not is_owner:
            raise AuthenticationError(_INVALID)
        counter = signed.authenticator_data.counter
        return PasskeyUse(passkey.id, counter, self._challenges.sign_off(challenge))

    def _open_server(self) -> Fido2Server:
        self.require_available()
        from fido2.server import Fido2Server
        from fido2.webauthn import (
            AttestationConveyancePreference,
            PublicKeyCredentialParameters,
            PublicKeyCredentialRpEntity,
            PublicKeyCredentialType,
        )

        server = Fido2Server(
            PublicKeyCredentialRpEntity(name="Tocsin", id=self._rp_id),
            attestation=AttestationConveyancePreference.NONE,
            verify_origin=lambda origin: origin == self.origin,  # by default, also of subdomains
        )
        public_key = PublicKeyCredentialType.PUBLIC_KEY
        server.allowed_algorithms = [
            PublicKeyCredentialParameters(type=public_key, alg=algorithm)
            for algorithm in ALGORITHMS
        ]
        return server

    def _start(self, options: Mapping[str, Any], challenge: Challenge) -> StartedCeremony:
        timeout = int(LIFETIME.total_seconds() * 1_000)
        public_key = {**options["publicKey"], "timeout": timeout}
        return StartedCeremony(public_key, self._challenges.seal(challenge))


def open_ceremonies(public_url: str, port: int, vault: Vault, clock: Clock) -> PasskeyCeremonies:
    """Return the ceremonies of the console at a base URL; the service listens on `port`."""
    cipher = partial(vault.open_cipher, CEREMONY_KEY_PURPOSE)
    return PasskeyCeremonies(public_url, port, SealedChallenges(cipher, clock))


def read_credential_id(answer: str) -> str:
    """Return the unverified ID of the credential in a response; raises AuthenticationError."""
    found = _parse(answer).get("rawId")
    if not isinstance(found, str) or not found.isascii() or not found.isprintable():
        raise AuthenticationError(_INVALID)
    return found


def find_passkey_fault(public_url: str, port: int) -> str | None:
    """Return why browsers refuse passkeys at the base URL and the remedy, None if they do not.

    The remedy for this machine names the `port` on which the service listens.

    Web Authentication Level 3, section 5.1.2: in secure contexts alone, and for domains alone.
    """
    url = URL(public_url)
    host = url.host or ""
    try:
        ip_address(host)
    except ValueError:
        is_local = host == "localhost" or host.endswith(".localhost")
        if url.scheme == "https" or is_local:
            return None
        problem = "which is not encrypted"
    else:
        problem = "which has no host name"
    here = "" if url.scheme == "https" else f", or to http://localhost:{port} for this machine only"
    return (
        f"Passkeys do not work at {url.origin()}, {problem}. Set TOCSIN_BASE_URL to an https:// "
        f"URL with a host name{here}, and restart the service."
    )


def _parse(answer: str) -> dict[str, Any]:
    if len(answer) > _LARGEST_ANSWER:
        raise AuthenticationError(_INVALID)
    try:
        found = orjson.loads(answer)
    except ValueError as error:
        raise AuthenticationError(_INVALID) from error
    if not isinstance(found, dict):
        raise AuthenticationError(_INVALID)
    return found


def _require_own_page(response: Mapping[str, Any]) -> None:
    """Raise ValueError if the console was in a frame of another site (sections 7.1 and 7.2)."""
    client_data = orjson.loads(_decode(response["response"]["clientDataJSON"]))
    if client_data.get("crossOrigin", False) is not False or "topOrigin" in client_data:
        raise ValueError("the page was embedded")


def _describe_state(challenge: Challenge) -> dict[str, str]:
    return {"challenge": challenge.text, "user_verification": "required"}


def _encode_key(created: AttestedCredentialData | None) -> bytes:
    from fido2 import cbor

    return b"" if created is None else cbor.encode(dict(created.public_key))


def _restore_credential(passkey: Passkey) -> AttestedCredentialData:
    from fido2 import cbor
    from fido2.cose import CoseKey
    from fido2.webauthn import Aaguid, AttestedCredentialData

    key = CoseKey.parse(cast("Mapping[int, Any]", cbor.decode(passkey.public_key)))
    return AttestedCredentialData.create(Aaguid.NONE, _decode(passkey.credential_id), key)


def _encode(content: bytes) -> str:
    return urlsafe_b64encode(content).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))
