"""One SMTP session, from greeting to QUIT (RFC 5321)."""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from ipaddress import ip_address
from typing import Self
from urllib.parse import urlsplit

from aiosmtplib import (
    SMTP,
    SMTPDataError,
    SMTPException,
    SMTPRecipientRefused,
    SMTPSenderRefused,
)

from tocsin import Misconfigured, Refused, Tools
from tocsin_plugins.email.failures import (
    CLOSING,
    ERRORS,
    build_auth_failure,
    build_failure,
    build_sender_failure,
    is_about_sender,
)
from tocsin_plugins.email.fields import SmtpServer
from tocsin_plugins.email.outcomes import RecipientOutcome

_GOODBYE_SECONDS = 2.0
# only one is tried: several with the same wrong password could lock an account
_METHODS = ("plain", "login", "cram-md5")
_NAME = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)+")
NO_UTF8 = RecipientOutcome(553, "5.6.7 the server does not accept non-ASCII addresses (SMTPUTF8)")


class SmtpSession:
    """Runs one step at a time; errors name the step."""

    def __init__(self, server: SmtpServer, tools: Tools) -> None:
        self._server = server
        self._tools = tools
        self._smtp = SMTP()
        self.step = "connecting"

    async def __aenter__(self) -> Self:
        """Connect, encrypt and sign in; raises on failure."""
        server, tools = self._server, self._tools
        is_plain = server.tls == "none"
        connection = await tools.sockets.connect(
            server.host, server.port, plain=is_plain, timeout=server.timeout
        )
        self._smtp = SMTP(
            hostname=server.host,
            sock=connection,
            use_tls=server.tls == "implicit",
            start_tls=False,
            tls_context=None if is_plain else tools.sockets.tls,
            local_hostname=_own_name(tools.public_url, connection),
            timeout=server.timeout.total_seconds(),
        )
        try:
            await self._begin()
        except BaseException as error:
            await self._leave(has_time=isinstance(error, Exception))
            connection.close()
            raise
        return self

    async def __aexit__(self, kind: object, error: object, traceback: object) -> None:
        """Say QUIT; its result does not change the outcomes."""
        await self._leave(has_time=error is None or isinstance(error, Exception))

    async def _leave(self, *, has_time: bool) -> None:
        transport = self._smtp.transport
        try:
            if has_time and self._smtp.is_connected:
                with contextlib.suppress(*ERRORS):
                    await self._smtp.quit(timeout=_GOODBYE_SECONDS)
        finally:
            self._smtp.close()
            if isinstance(transport, asyncio.Transport):
                transport.abort()  # without waiting for the server's TLS shutdown

    async def _begin(self) -> None:
        with self._saying("the greeting"):
            await self._smtp.connect()
        with self._saying("EHLO"):
            await self._smtp.ehlo()
        if self._server.tls == "starttls":
            with self._saying("STARTTLS"):
                await self._smtp.starttls()
            with self._saying("EHLO"):
                await self._smtp.ehlo()
        if self._server.username is not None:
            await self._sign_in(self._server.username, self._server.password)

    async def _sign_in(self, username: str, password: str) -> None:
        method = next(
            (method for method in _METHODS if method in self._smtp.server_auth_methods), None
        )
        if method is None:
            raise Misconfigured(
                f"{self._server.host} does not support any available authentication method "
                f"({', '.join(_METHODS).upper()}); omit username and password if it requires none"
            )
        with self._saying("AUTH"):
            sign_in = getattr(self._smtp, f"auth_{method.replace('-', '')}")
            try:
                await sign_in(username, password)
            except SMTPException as error:
                raise build_auth_failure(error, self._server.host) from None

    @contextmanager
    def _saying(self, step: str) -> Iterator[None]:
        self.step = step
        try:
            yield
        except ERRORS as error:
            raise build_failure(error, self._server.host, step) from None

    async def send(
        self, sender: str, recipients: Sequence[str], content: bytes, *, utf8: bool
    ) -> dict[str, RecipientOutcome]:
        """Send a mail once, and return the server's response for each recipient.

        Raises `TryLater`, `Misconfigured` or `Refused` if nobody received the mail, or if the
        connection was lost before the response, so that the outcome is unknown.
        """
        if (largest := self.largest) and len(content) > largest:
            raise Refused(
                f"the email has {len(content):,} bytes; the server accepts at most {largest:,}"
            )
        outcomes = await self.address(sender, recipients, size=len(content), utf8=utf8)
        accepted = [recipient for recipient, outcome in outcomes.items() if outcome.has_it]
        if accepted:
            outcomes |= dict.fromkeys(accepted, await self._hand_over(content))
        if not any(outcome.has_it for outcome in outcomes.values()):
            await self.reset()
        return outcomes

    @property
    def largest(self) -> int:
        """The server's size limit of a mail in bytes (RFC 1870); 0 if it states none."""
        given = self._smtp.esmtp_extensions.get("size", "")
        return int(given) if given.isdecimal() else 0

    async def address(
        self, sender: str, recipients: Sequence[str], *, size: int = 0, utf8: bool = False
    ) -> dict[str, RecipientOutcome]:
        """Return the server's response for each recipient, before sending."""
        if utf8 and not self._smtp.supports_extension("smtputf8"):
            return dict.fromkeys(recipients, NO_UTF8)
        encoding = "utf-8" if utf8 else "ascii"
        options = ["SMTPUTF8"] if utf8 else []
        if size and self._smtp.supports_extension("size"):
            options.append(f"SIZE={size}")
        with self._saying("MAIL FROM"):
            try:
                await self._smtp.mail(sender, options=options, encoding=encoding)
            except SMTPSenderRefused as error:
                raise build_sender_failure(error, sender) from None
        return {
            recipient: await self._address(recipient, sender, encoding) for recipient in recipients
        }

    async def _address(self, recipient: str, sender: str, encoding: str) -> RecipientOutcome:
        with self._saying("RCPT TO"):
            try:
                answer = await self._smtp.rcpt(recipient, encoding=encoding)
            except SMTPRecipientRefused as error:
                if error.code == CLOSING:
                    raise
                if is_about_sender(error, sender, recipient):
                    await self.reset()
                    raise build_sender_failure(error, sender) from None
                return RecipientOutcome.of(error.code, error.message)
        return RecipientOutcome.of(answer.code, answer.message)

    async def _hand_over(self, content: bytes) -> RecipientOutcome:
        with self._saying("DATA"):
            try:
                answer = await self._smtp.data(content)
            except SMTPDataError as error:
                if error.code == CLOSING:
                    raise
                return RecipientOutcome.of(error.code, error.message, of_content=True)
        return RecipientOutcome.of(answer.code, answer.message)

    async def reset(self) -> None:
        """Clear the recipients; a server that does not respond fails at the next step."""
        with contextlib.suppress(*ERRORS):
            await self._smtp.rset()


def _own_name(public_url: str, connection: socket.socket) -> str:
    """Return the EHLO name: a name of this service, or its address (section 4.1.4)."""
    name = urlsplit(public_url).hostname or ""
    if _NAME.fullmatch(name) and not name.replace(".", "").isdecimal():
        return name
    address = ip_address(connection.getsockname()[0])
    return f"[{address}]" if address.version == 4 else f"[IPv6:{address}]"  # noqa: PLR2004
