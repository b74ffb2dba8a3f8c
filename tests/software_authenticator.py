"""WebAuthn authenticator in software, with the part of a browser that speaks for it."""

from __future__ import annotations

import secrets
import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import orjson
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from fido2 import cbor

PRESENT, VERIFIED, ATTESTED = 0x01, 0x04, 0x40


def encode(content: bytes) -> str:
    return urlsafe_b64encode(content).rstrip(b"=").decode()


def decode(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


@dataclass
class SoftwareAuthenticator:
    """Holds one passkey; its attributes are what an attacker may have changed."""

    origin: str = "https://tocsin.example"
    rp_id: str = "tocsin.example"
    flags: int = PRESENT | VERIFIED
    counter: int = 0
    step: int = 1
    """By how much the counter grows with each signature; 0 for authenticators without one."""
    algorithm: int = -7
    client_data: Mapping[str, Any] = field(default_factory=dict)
    """Additional members of the client data."""
    credential_id: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    user_handle: str = ""
    key: ec.EllipticCurvePrivateKey = field(
        default_factory=lambda: ec.generate_private_key(ec.SECP256R1())
    )

    def create(self, options: Mapping[str, Any]) -> str:
        """Return the registration response as JSON."""
        self.user_handle = options["user"]["id"]
        point = self.key.public_key().public_numbers()
        key = {1: 2, 3: self.algorithm, -1: 1}
        key |= {-2: point.x.to_bytes(32, "big"), -3: point.y.to_bytes(32, "big")}
        length = struct.pack(">H", len(self.credential_id))
        attested = bytes(16) + length + self.credential_id + cbor.encode(key)
        data = self._data(ATTESTED) + attested
        attestation = {"fmt": "none", "attStmt": {}, "authData": data}
        return self._answer(
            clientDataJSON=self._describe("webauthn.create", options),
            attestationObject=cbor.encode(attestation),
        )

    def sign(self, options: Mapping[str, Any]) -> str:
        """Return the authentication response as JSON."""
        self.counter += self.step
        data, client_data = self._data(), self._describe("webauthn.get", options)
        signed = data + sha256(client_data).digest()
        return self._answer(
            clientDataJSON=client_data,
            authenticatorData=data,
            signature=self.key.sign(signed, ec.ECDSA(SHA256())),
            userHandle=decode(self.user_handle),
        )

    def _data(self, more: int = 0) -> bytes:
        flags = struct.pack(">BI", self.flags | more, self.counter)
        return sha256(self.rp_id.encode()).digest() + flags

    def _describe(self, kind: str, options: Mapping[str, Any]) -> bytes:
        challenge = options["challenge"]
        described = {"type": kind, "challenge": challenge, "origin": self.origin}
        return orjson.dumps({**described, "crossOrigin": False, **self.client_data})

    def _answer(self, **parts: bytes) -> str:
        response = {name: encode(part) for name, part in parts.items()}
        id_ = encode(self.credential_id)
        answer = {"id": id_, "rawId": id_, "type": "public-key", "response": response}
        return orjson.dumps({**answer, "clientExtensionResults": {}}).decode()
