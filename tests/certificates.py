"""Certificate authority for tests."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from itertools import count
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


class Authority:
    """Issues certificates, each in a PEM file together with its key."""

    def __init__(self, folder: Path, name: str = "Authority") -> None:
        self._folder = folder
        self._numbers = count()
        self._name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.file = self._write(self._sign(self._key, self._name, [], authority=True))

    def self_signed(self, *names: str) -> str:
        """Return the file of a certificate of the authority's own, which serves for `names`."""
        names = [_general_name(name) for name in names]
        return self._write(self._sign(self._key, self._name, names, authority=True), self._key)

    def issue(self, *names: str, age: timedelta = timedelta(0)) -> str:
        """Return the file of a certificate for `names`, which is valid for a day, and its key."""
        certificate, key = self._issue(names, age)
        return self._write(certificate, key)

    def issue_apart(self, *names: str) -> tuple[str, str]:
        """Return a file of a certificate for `names`, and one of its key."""
        certificate, key = self._issue(names)
        return self._write(certificate), self._write(key)

    def _issue(self, names, age=timedelta(0)):
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "subject")])
        return self._sign(key, subject, [_general_name(name) for name in names], age=age), key

    def server(self, *names: str, **options) -> ssl.SSLContext:
        """Return what a server for `names` needs."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.issue(*names, **options))
        return context

    def _sign(self, key, subject, names, *, authority=False, age=timedelta(0)):
        start = datetime.now(UTC) - timedelta(minutes=5) - age
        builder = (
            x509.CertificateBuilder(self._name, subject, key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(start)
            .not_valid_after(start + timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
            )
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                critical=False,
            )
        )
        if authority:
            builder = builder.add_extension(_SIGNS_CERTIFICATES, critical=True)
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return builder.sign(self._key, hashes.SHA256())

    def _write(self, *blocks: x509.Certificate | ec.EllipticCurvePrivateKey) -> str:
        path = self._folder / f"{next(self._numbers)}-{id(self)}.pem"
        path.write_bytes(b"".join(as_pem(block) for block in blocks))
        return str(path)


def as_pem(block: x509.Certificate | ec.EllipticCurvePrivateKey, passphrase: bytes = b"") -> bytes:
    if isinstance(block, x509.Certificate):
        return block.public_bytes(serialization.Encoding.PEM)
    encryption = (
        serialization.BestAvailableEncryption(passphrase)
        if passphrase
        else serialization.NoEncryption()
    )
    form = serialization.PrivateFormat.PKCS8
    return block.private_bytes(serialization.Encoding.PEM, form, encryption)


_SIGNS_CERTIFICATES = x509.KeyUsage(
    digital_signature=True,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)
