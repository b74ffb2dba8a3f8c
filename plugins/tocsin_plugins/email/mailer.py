"""Delivery of mails to their remaining recipients."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tocsin import Delivery, Misconfigured, PluginFailure, Receipt, Refused, Tools, TryLater
from tocsin_plugins.email.addresses import Mailbox
from tocsin_plugins.email.composer import ComposedMail, MailComposer, split_into_mails
from tocsin_plugins.email.fields import MailEnvelope, SmtpServer
from tocsin_plugins.email.outcomes import RecipientOutcome, parse_accepted
from tocsin_plugins.email.send_queue import SendTask
from tocsin_plugins.email.smtp_session import SmtpSession


@dataclass(frozen=True, slots=True)
class _Mailing:
    """One mail and its remaining recipients."""

    composed: ComposedMail
    tasks: Sequence[SendTask]
    recipients: tuple[Mailbox, ...]


class Mailer:
    """Runs the attempts of one destination."""

    def __init__(self, server: SmtpServer, addressing: MailEnvelope, tools: Tools) -> None:
        self._server = server
        self._addressing = addressing
        self._tools = tools
        self._writer = MailComposer(tools, addressing.sender.domain)

    async def bring(self, deliveries: Sequence[Delivery]) -> list[Receipt | PluginFailure]:
        """Send the deliveries, several in one mail, and return their results."""
        tasks = [await self._prepare_task(delivery) for delivery in deliveries]
        rounds = list(self._rounds([task for task in tasks if task.failure is None]))
        if any(each.recipients for each in rounds):
            await self._send_all(rounds)
        return [self._result(task) for task in tasks]

    def _result(self, task: SendTask) -> Receipt | PluginFailure:
        result = task.result()
        if isinstance(result, Receipt) and task.refused:
            event_id = task.delivery.event.id
            self._tools.log.warning(
                "some recipients refused", event_id=event_id, refused=task.refused
            )
        return result

    async def _prepare_task(self, delivery: Delivery) -> SendTask:
        task = SendTask(delivery)
        if delivery.attempt > 1:
            found = parse_accepted(await self._tools.attempts.last_answer(delivery.id))
            addresses = {recipient.address for recipient in self._addressing.recipients}
            task.outcomes = {address: found[address] for address in found if address in addresses}
        try:
            task.entry = self._writer.render_entry(delivery)
        except Misconfigured as failure:
            task.failure = failure
        return task

    def _rounds(self, tasks: Sequence[SendTask]) -> Iterator[_Mailing]:
        """Yield the mails to send: one for all tasks with the same remaining recipients."""
        waiting: dict[tuple[Mailbox, ...], list[SendTask]] = {}
        for task in sorted(tasks, key=lambda task: task.delivery.event.id):
            missing = (
                recipient
                for recipient in self._addressing.recipients
                if not task.has(recipient.address)
            )
            waiting.setdefault(tuple(missing), []).append(task)
        for recipients, those in waiting.items():
            for chunk in split_into_mails([(task, task.entry) for task in those if task.entry]):
                yield from self._round([task for task, _ in chunk], recipients)

    def _round(
        self, tasks: Sequence[SendTask], recipients: tuple[Mailbox, ...]
    ) -> Iterator[_Mailing]:
        entries = [task.entry for task in tasks if task.entry]
        deliveries = [task.delivery for task in tasks]
        try:
            if len(tasks) == 1:
                composed = self._writer.compose_event(deliveries[0], entries[0])
            else:
                composed = self._writer.compose_digest(deliveries, entries)
        except Misconfigured as failure:
            _fail(tasks, failure)
            return
        for task in tasks:
            task.thread = composed.thread
        yield _Mailing(composed, tasks, recipients)

    async def _send_all(self, rounds: Sequence[_Mailing]) -> None:
        """Send each mail; an error that ends the connection fails all following ones."""
        session = SmtpSession(self._server, self._tools)
        left = [each for each in rounds if each.recipients]
        try:
            async with asyncio.timeout(self._server.timeout.total_seconds()), session:
                while left:
                    await self._send(session, left[0])
                    left.pop(0)
        except PluginFailure as failure:
            _fail_all(left, failure)
        except TimeoutError:
            _fail_all(left, TryLater(f"{self._server.host}: {session.step}: timeout"))

    async def _send(self, session: SmtpSession, each: _Mailing) -> None:
        """Send one mail, separately to recipients that need SMTPUTF8."""
        for utf8, addresses in self._addressing.groups(each.recipients):
            content = each.composed.mail.write(self._addressing, utf8=utf8)
            try:
                await self._hand_over(session, each, addresses, content, utf8=utf8)
            except Refused as failure:  # concerns this mail or its sender alone
                _fail(each.tasks, failure)

    async def _hand_over(
        self,
        session: SmtpSession,
        each: _Mailing,
        addresses: list[str],
        content: bytes,
        *,
        utf8: bool,
    ) -> None:
        """Send to the recipients, and again to deferred ones as long as any accept.

        A server may limit the recipients per mail (RFC 5321 section 4.5.3.1.10).
        """
        while addresses:
            sender = self._addressing.sender.address
            outcomes = await session.send(sender, addresses, content, utf8=utf8)
            for task in each.tasks:
                task.learn(outcomes)
            addresses = _list_deferred(outcomes)


def _list_deferred(outcomes: dict[str, RecipientOutcome]) -> list[str]:
    """Return the recipients to retry now: none if nobody accepted this time."""
    if not any(outcome.has_it for outcome in outcomes.values()):
        return []
    return [address for address, outcome in outcomes.items() if not outcome.is_final]


def _fail_all(rounds: Sequence[_Mailing], failure: PluginFailure) -> None:
    _fail([task for each in rounds for task in each.tasks], failure)


def _fail(tasks: Sequence[SendTask], failure: PluginFailure) -> None:
    for task in tasks:
        task.failure = failure
