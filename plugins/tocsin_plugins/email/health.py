"""Health check of a mail server."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from tocsin import CredentialsRefused, Health, Misconfigured, Tools, TryLater
from tocsin_plugins.email.fields import MailEnvelope, SmtpServer
from tocsin_plugins.email.outcomes import RecipientOutcome
from tocsin_plugins.email.smtp_session import SmtpSession

_ENCRYPTION = {"starttls": "with STARTTLS", "implicit": "over TLS", "none": "without TLS"}


async def check_server(server: SmtpServer, addressing: MailEnvelope, tools: Tools) -> Health:
    """Report what the server says about sender and recipients, before any mail is sent.

    Every recipient is checked. Raises `TryLater` if the server cannot be reached or is busy.
    Deferred recipients are reported in the detail, not as problems.
    """
    session = SmtpSession(server, tools)
    try:
        async with asyncio.timeout(server.timeout.total_seconds()), session:
            outcomes = await _ask(session, addressing)
    except CredentialsRefused as refusal:
        return Health(detail="", problems=(f"username: {refusal}",))
    except Misconfigured as refusal:
        field = "sender" if session.step == "MAIL FROM" else "host"
        return Health(detail="", problems=(f"{field}: {refusal}",))
    except TimeoutError:
        raise TryLater(f"{server.host}: {session.step}: timeout") from None
    return Health(detail=_detail(server, outcomes), problems=tuple(_problems(addressing, outcomes)))


async def _ask(session: SmtpSession, addressing: MailEnvelope) -> dict[str, RecipientOutcome]:
    outcomes: dict[str, RecipientOutcome] = {}
    for utf8, addresses in addressing.groups():
        outcomes |= await session.address(addressing.sender.address, addresses, utf8=utf8)
        await session.reset()
    return outcomes


def _problems(addressing: MailEnvelope, outcomes: Mapping[str, RecipientOutcome]) -> Sequence[str]:
    copied = {mailbox.address for mailbox in addressing.cc}
    copied -= {mailbox.address for mailbox in addressing.to}
    return [
        f"{'cc' if address in copied else 'to'}: {address}: {outcome}"
        for address, outcome in outcomes.items()
        if outcome.is_final and not outcome.has_it
    ]


def _detail(server: SmtpServer, outcomes: Mapping[str, RecipientOutcome]) -> str:
    accepted = sum(outcome.has_it for outcome in outcomes.values())
    deferred = [
        f"{address}: {outcome}" for address, outcome in outcomes.items() if not outcome.is_final
    ]
    signed_in = f", signed in as {server.username}" if server.username else ""
    parts = [
        f"{server.host}, port {server.port}, {_ENCRYPTION[server.tls]}{signed_in}",
        f"the server accepts {accepted} of {len(outcomes)} recipients",
        *(f"deferred: {address}" for address in deferred),
        "no email was sent",
    ]
    return "; ".join(parts)
