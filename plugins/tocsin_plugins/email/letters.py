"""Which mails tell of which events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tocsin import Delivery, Tools
from tocsin_plugins.email.digests import DigestEntry, join_entries
from tocsin_plugins.email.message import LONGEST_SUBJECT, OutgoingMail
from tocsin_plugins.email.threads import MailThread, build_message_id, build_shared_message_id
from tocsin_plugins.email.words import clean_lines, to_one_line


@dataclass(frozen=True, slots=True)
class ComposedMail:
    """A mail, and the thread that it is of."""

    letter: OutgoingMail
    thread: MailThread


class MailComposer:
    """Writes the mails of one destination; `domain` is that of its sender."""

    def __init__(self, tools: Tools, domain: str) -> None:
        self._tools = tools
        self._domain = domain

    def entry(self, delivery: Delivery) -> DigestEntry:
        """Return what is told of an event; raises `Misconfigured` where a template fails."""
        event = delivery.event
        subject = to_one_line(delivery.render("subject").decode(), LONGEST_SUBJECT)
        return DigestEntry(
            subject=subject or event.event_type.value,
            text=clean_lines(delivery.render("text").decode()),
            html=clean_lines(delivery.render("html").decode()),
        )

    def one(self, delivery: Delivery, entry: DigestEntry) -> ComposedMail:
        """Return the mail of one event, in its thread."""
        event = delivery.event
        named = build_message_id(event.id, self._domain)
        before = MailThread.before(delivery)
        about = build_message_id(event.key, self._domain)
        thread = before or MailThread(named, entry.subject)
        # what concerns another subject's thread has nothing to do with the name of its own
        begin = () if before and before != MailThread.of(delivery.remote) else (about,)
        letter = OutgoingMail(
            message_id=named,
            subject=f"Re: {to_one_line(before.subject, LONGEST_SUBJECT)}"
            if before
            else entry.subject,
            text=entry.text,
            html=entry.html,
            sent_at=self._tools.clock.now(),
            list_id=self._list_id,
            parent=before.first if before else None,
            references=(*begin, *((before.first,) if before else ())),
            extra=(("X-Tocsin-Event", event.event_type.value), ("X-Tocsin-Event-Id", event.id)),
        )
        return ComposedMail(letter, thread)

    def several(
        self, deliveries: Sequence[Delivery], entries: Sequence[DigestEntry]
    ) -> ComposedMail:
        """Return the one mail of several events, which stands in no thread."""
        named = build_shared_message_id([it.event.id for it in deliveries], self._domain)
        whole = join_entries(entries)
        letter = OutgoingMail(
            message_id=named,
            subject=whole.subject,
            text=whole.text,
            html=whole.html,
            sent_at=self._tools.clock.now(),
            list_id=self._list_id,
            extra=(("X-Tocsin-Event", "digest"),),
        )
        return ComposedMail(letter, MailThread(named, whole.subject))

    @property
    def _list_id(self) -> str:
        """What mail readers can sort by: RFC 2919."""
        return f"<{self._tools.name}.tocsin.{self._domain}>"
