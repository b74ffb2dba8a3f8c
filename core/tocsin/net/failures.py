"""What aiohttp's errors mean, in words of ours: its own show the whole URL, which may be secret."""

from __future__ import annotations

import ssl

import aiohttp

from tocsin.net.guard import BlockedError
from tocsin.net.tls import describe_ssl_error

# The first that fits an error says what happened.
_REASONS: tuple[tuple[type[BaseException], str], ...] = (
    (TimeoutError, "time-out"),
    (aiohttp.ClientConnectorDNSError, "name not found"),
    (aiohttp.ClientConnectorError, "cannot connect"),
    (aiohttp.ClientResponseError, "the answer is not HTTP"),
    (Exception, "connection reset"),
)


def describe_error(error: Exception) -> str:
    """Return what happened."""
    match error.__cause__, error:
        case ssl.SSLCertVerificationError() as cause, _:
            return f"TLS certificate not valid ({cause.verify_message})"
        case ssl.SSLError() as cause, _:  # also the alert of a server that wants a certificate
            return f"TLS handshake failed ({describe_ssl_error(cause)})"
        case _, aiohttp.ClientHttpProxyError():
            return f"it refuses to connect further (status {error.status})"
    return next(words for kind, words in _REASONS if isinstance(error, kind))


def is_blocked_error(error: Exception) -> bool:
    """Return whether it was the guard that forbade the connection."""
    return isinstance(getattr(error, "os_error", None), BlockedError)


def is_proxy_error(error: Exception) -> bool:
    """Return whether the error concerns the proxy, if there is one, and not the target."""
    return isinstance(
        error,
        aiohttp.ClientConnectorDNSError
        | aiohttp.ClientProxyConnectionError
        | aiohttp.ClientHttpProxyError,
    )
