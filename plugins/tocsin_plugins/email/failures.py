"""Interpretation of a mail server's responses and timeouts (RFC 5321, 3463)."""

from __future__ import annotations

import re
import ssl

from aiosmtplib import (
    SMTPException,
    SMTPRecipientRefused,
    SMTPResponseException,
    SMTPSenderRefused,
)

from tocsin import CredentialsRefused, Misconfigured, PluginFailure, Refused, TryLater
from tocsin_plugins.email.message import to_one_line

ERRORS = (SMTPException, OSError, ValueError)
"""Exceptions that aiosmtplib raises: its own, and for sockets, TLS and unparsable responses."""
_LONGEST = 300
CLOSING = 421
"""Response of a server that closes the connection."""
_PERMANENT = range(500, 600)
_TOO_LARGE = 552
_SIGN_IN_FIRST = 530
# The first matching type describes the error.
_REASONS: tuple[tuple[type[BaseException], str], ...] = (
    (SMTPResponseException, "the response is not valid SMTP"),
    (ValueError, "the response is not valid SMTP"),
    (TimeoutError, "timeout"),
    (OSError, "the connection was lost"),
)
_ABOUT_SENDER = re.compile(r"5\.1\.[78]\b")
_ABOUT_SIZE = re.compile(r"5\.(2\.3|3\.4)\b")  # RFC 3463: a mailbox's limit, the system's


def build_failure(error: Exception, host: str, step: str) -> PluginFailure:
    """Return the failure for an error in a step; every error is transient."""
    code = error.code if isinstance(error, SMTPResponseException) else 0
    message = f"{host}: {step}: {_describe_error(error)}"
    if step == "DATA" and not code:
        message += "; the email may have arrived, so the retry uses the same Message-ID"
    return TryLater(message, throttled=code == CLOSING, status=code if code > 0 else None)


def build_auth_failure(error: SMTPException, host: str) -> PluginFailure | SMTPException:
    """Return the failure of signing in; the error itself if it is not a refusal."""
    if isinstance(error, SMTPResponseException) and error.code in _PERMANENT:
        return CredentialsRefused(f"{host}: AUTH: {_describe_error(error)}", status=error.code)
    return error


def build_sender_failure(
    error: SMTPSenderRefused | SMTPRecipientRefused, sender: str
) -> PluginFailure | SMTPException:
    """Return the failure for a refused sender; the error itself if it is transient."""
    if error.code not in _PERMANENT:
        return error
    reason = _describe_error(error)
    if error.code == _TOO_LARGE or _ABOUT_SIZE.search(error.message):
        return Refused(f"the email is too large: {reason}", status=error.code)
    if error.code == _SIGN_IN_FIRST:
        reason += "; set username and password"
    return Misconfigured(f"sender {sender}: {reason}", status=error.code)


def is_about_sender(error: SMTPResponseException, sender: str, recipient: str) -> bool:
    """Return whether a recipient was refused because of the sender.

    Some servers check the sender only when they receive a recipient. The response then has an
    enhanced status about senders (5.1.7 or 5.1.8 in RFC 3463) or a text that names only the sender,
    as in Postfix's `<sender>: Sender address rejected: not owned by user`.
    """
    if error.code not in _PERMANENT:
        return False
    text = error.message.lower()
    names_sender = f"<{sender.lower()}>" in text and f"<{recipient.lower()}>" not in text
    return bool(_ABOUT_SENDER.match(text)) or names_sender or "sender address rejected" in text


def _describe_error(error: Exception) -> str:
    """Describe an error in one line."""
    if isinstance(error, SMTPResponseException) and error.code > 0:
        return f"{error.code} {to_one_line(error.message, _LONGEST)}".rstrip()
    for cause in (error, error.__cause__):
        if isinstance(cause, ssl.SSLError):
            return _describe_tls_error(cause)
    found = (message for kind, message in _REASONS if isinstance(error, kind))
    return next(found, to_one_line(str(error), _LONGEST))


def _describe_tls_error(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"TLS certificate not valid ({error.verify_message})"
    reason = (error.reason or "no reason given").replace("_", " ").lower()
    return f"TLS handshake failed ({reason})"
