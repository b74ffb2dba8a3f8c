"""Which mails tell of which events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tocsin import Delivery, Tools
from tocsin_plugins.email.digests import Entry, together
from tocsin_plugins.email.message import LONGEST_SUBJECT, Letter
from tocsin_plugins.email.threads import Thread, identifier, shared_identifier
from tocsin_plugins.email.words import lines, one_line


@dataclass(frozen=True, slots=True)
class Written:
    """A mail, and the thread that it is of."""

    letter: Letter
    thread: Thread


class Writer:
    """Writes the mails of one destination; `domain` is that of its sender."""

    def __init__(self, tools: Tools, domain: str) -> None:
        self._tools = tools
        self._domain = domain

    def entry(self, delivery: Delivery) -> Entry:
        """Return what is told of an event; raises `Misconfigured` where a template fails."""
        event = delivery.event
        subject = one_line(delivery.render("subject").decode(), LONGEST_SUBJECT)
        return Entry(
            subject=subject or event.event_type.value,
            text=lines(delivery.render("text").decode()),
            html=lines(delivery.render("html").decode()),
        )

    def one(self, delivery: Delivery, entry: Entry) -> Written:
        """Return the mail of one event, in its thread."""
        event = delivery.event
        named = identifier(event.id, self._domain)
        before = Thread.before(delivery)
        about = identifier(event.key, self._domain)
        thread = before or Thread(named, entry.subject)
        # what concerns another subject's thread has nothing to do with the name of its own
        begin = () if before and before != Thread.of(delivery.remote) else (about,)
        letter = Letter(
            message_id=named,
            subject=f"Re: {one_line(before.subject, LONGEST_SUBJECT)}" if before else entry.subject,
            text=entry.text,
            html=entry.html,
            sent_at=self._tools.clock.now(),
            list_id=self._list_id,
            parent=before.first if before else None,
            references=(*begin, *((before.first,) if before else ())),
            extra=(("X-Tocsin-Event", event.event_type.value), ("X-Tocsin-Event-Id", event.id)),
        )
        return Written(letter, thread)

    def several(self, deliveries: Sequence[Delivery], entries: Sequence[Entry]) -> Written:
        """Return the one mail of several events, which stands in no thread."""
        named = shared_identifier([it.event.id for it in deliveries], self._domain)
        whole = together(entries)
        letter = Letter(
            message_id=named,
            subject=whole.subject,
            text=whole.text,
            html=whole.html,
            sent_at=self._tools.clock.now(),
            list_id=self._list_id,
            extra=(("X-Tocsin-Event", "digest"),),
        )
        return Written(letter, Thread(named, whole.subject))

    @property
    def _list_id(self) -> str:
        """What mail readers can sort by: RFC 2919."""
        return f"<{self._tools.name}.tocsin.{self._domain}>"
