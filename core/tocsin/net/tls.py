"""TLS trust and client certificates, from files of the operator."""

from __future__ import annotations

import ssl
from pathlib import Path

from tocsin.errors import OperatorError


def build_tls_context(
    ca_file: str | None, client_certificate: str | None, client_key: str | None
) -> ssl.SSLContext | bool:
    """Return aiohttp's argument `ssl`: a context, or True for its default.

    `ca_file` replaces the system's authorities. Raises OperatorError, with a remedy, for an
    unsuitable file.
    """
    if not (ca_file or client_certificate or client_key):
        return True
    context = build_verifying_context(ca_file, client_certificate, client_key)
    context.set_alpn_protocols(["http/1.1"])
    return context


def build_verifying_context(
    ca_file: str | None, client_certificate: str | None, client_key: str | None
) -> ssl.SSLContext:
    """Return a context that verifies certificates and names, for any protocol.

    Raises OperatorError as `build_tls_context` does.
    """
    if client_key and not client_certificate:
        raise OperatorError(
            f"client_key: {client_key}: client_certificate is missing; set both or neither"
        )
    context = _load_authorities(ca_file)
    if client_certificate:
        _load_client_certificate(context, client_certificate, client_key)
    return context


def _load_authorities(ca_file: str | None) -> ssl.SSLContext:
    if not ca_file:
        return ssl.create_default_context()
    expected = "use a PEM file with one or more certificates"
    _check_readable("ca_file", ca_file, expected)
    try:
        return ssl.create_default_context(cafile=ca_file)
    except ssl.SSLError as error:
        raise _build_error("ca_file", ca_file, error, expected) from None


def _load_client_certificate(context: ssl.SSLContext, certificate: str, key: str | None) -> None:
    expected = (
        "use a PEM file with a certificate and its private key, without a passphrase, or set "
        "client_key to the file with the key"
    )
    _check_readable("client_certificate", certificate, expected)
    if key:
        _check_readable("client_key", key, expected)
    try:
        # Without a passphrase callback, OpenSSL would prompt at the terminal.
        context.load_cert_chain(certificate, key, password="")
    except ssl.SSLError as error:
        place = f"{certificate} with client_key {key}" if key else certificate
        raise _build_error("client_certificate", place, error, expected) from None


def _check_readable(setting: str, path: str, expected: str) -> None:
    """Raise OperatorError for an unreadable file: OpenSSL does not name it."""
    try:
        Path(path).open("rb").close()
    except OSError as error:
        raise OperatorError(f"{setting}: {path}: {error.strerror}; {expected}") from None


def _build_error(setting: str, path: str, error: ssl.SSLError, expected: str) -> OperatorError:
    reason = describe_ssl_error(error) if error.reason else "the file has different content"
    return OperatorError(f"{setting}: {path}: {reason}; {expected}")


def describe_ssl_error(error: ssl.SSLError) -> str:
    """Return OpenSSL's reason for `error`, as words."""
    return (error.reason or "without a reason").replace("_", " ").lower()
