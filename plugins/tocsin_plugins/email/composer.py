"""Composition of mails and digests from events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from markupsafe import escape

from tocsin import Delivery, Misconfigured, Tools
from tocsin_plugins.email.message import LONGEST_SUBJECT, OutgoingMail, clean_lines, to_one_line
from tocsin_plugins.email.threads import MailThread, build_message_id, build_shared_message_id

BEGIN, END = "<!-- event -->", "<!-- /event -->"
"""Markers around the event's part in an HTML template."""
MAX_DIGEST_SIZE = 96 * 1024
"""Maximum size of a digest in bytes; some mail readers cut mails at 102 KB."""
_RULE = "\n\n" + "-" * 60 + "\n\n"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class DigestEntry:
    """Rendered content of one event or several."""

    subject: str
    text: str
    html: str

    @property
    def size(self) -> int:
        """Size in bytes."""
        return len(self.text.encode()) + len(self.html.encode())


def join_entries(entries: Sequence[DigestEntry]) -> DigestEntry:
    """Return the entries as one; raises `Misconfigured` if a template lacks the markers."""
    count = f"{len(entries)} events"
    first, rest = entries[0].subject, len(entries) - 1
    return DigestEntry(
        subject=to_one_line(f"{count}: {first}, and {rest} more", LONGEST_SUBJECT),
        text=_join_text(count, entries),
        html=_join_html(count, entries),
    )


def _join_text(count: str, entries: Sequence[DigestEntry]) -> str:
    contents = "\n".join(f"{place}. {entry.subject}" for place, entry in enumerate(entries, 1))
    sections = (f"{place}. {entry.text.strip()}" for place, entry in enumerate(entries, 1))
    return _RULE.join([f"{count}\n\n{contents}", *sections]) + "\n"


def _join_html(count: str, entries: Sequence[DigestEntry]) -> str:
    before, _, after = _split_html(entries[0].html)
    contents = "".join(f"<li>{escape(entry.subject)}</li>" for entry in entries)
    sections = (_split_html(entry.html)[1] for entry in entries)
    listed = f"<p><strong>{count}</strong></p><ol>{contents}</ol>"
    return f'{before}<div style="padding:8px 28px;">{listed}</div>{"".join(sections)}{after}'


def _split_html(html: str) -> tuple[str, str, str]:
    """Return the HTML before an event's part, that part, and the HTML after it."""
    before, begin, rest = html.partition(BEGIN)
    part, end, after = rest.rpartition(END)
    if not begin or not end:
        raise Misconfigured(f"for a digest, the HTML template must contain {BEGIN} and {END}")
    return before, part, after


def split_into_mails(
    items: Sequence[tuple[T, DigestEntry]],
) -> Iterator[list[tuple[T, DigestEntry]]]:
    """Yield the entries in order, as many at a time as fit into one mail."""
    chunk: list[tuple[T, DigestEntry]] = []
    size = 0
    for item in items:
        if chunk and size + item[1].size > MAX_DIGEST_SIZE:
            yield chunk
            chunk, size = [], 0
        chunk.append(item)
        size += item[1].size
    if chunk:
        yield chunk


@dataclass(frozen=True, slots=True)
class ComposedMail:
    """A mail and its thread."""

    mail: OutgoingMail
    thread: MailThread


class MailComposer:
    """Composes the mails of one destination; `domain` is the domain of the sender's address."""

    def __init__(self, tools: Tools, domain: str) -> None:
        self._tools = tools
        self._domain = domain

    def render_entry(self, delivery: Delivery) -> DigestEntry:
        """Return the rendered content of an event; raises `Misconfigured` if a template fails."""
        event = delivery.event
        subject = to_one_line(delivery.render("subject").decode(), LONGEST_SUBJECT)
        return DigestEntry(
            subject=subject or event.event_type.value,
            text=clean_lines(delivery.render("text").decode()),
            html=clean_lines(delivery.render("html").decode()),
        )

    def compose_event(self, delivery: Delivery, entry: DigestEntry) -> ComposedMail:
        """Return the mail of one event, in its thread."""
        event = delivery.event
        message_id = build_message_id(event.id, self._domain)
        before = MailThread.before(delivery)
        about = build_message_id(event.key, self._domain)
        thread = before or MailThread(message_id, entry.subject, about)
        # the identifier of this subject is the root of its own thread alone
        is_own = before is None or before == MailThread.of(delivery.remote_id)
        root = thread.root or (about if is_own else None)
        mail = OutgoingMail(
            message_id=message_id,
            subject=f"Re: {to_one_line(before.subject, LONGEST_SUBJECT)}"
            if before
            else entry.subject,
            text=entry.text,
            html=entry.html,
            sent_at=self._tools.clock.now(),
            list_id=self._list_id,
            parent=before.first if before else None,
            references=(*((root,) if root else ()), *((before.first,) if before else ())),
            extra=(("X-Tocsin-Event", event.event_type.value), ("X-Tocsin-Event-Id", event.id)),
        )
        return ComposedMail(mail, thread)

    def compose_digest(
        self, deliveries: Sequence[Delivery], entries: Sequence[DigestEntry]
    ) -> ComposedMail:
        """Return one mail for several events, outside any thread."""
        message_id = build_shared_message_id(
            [delivery.event.id for delivery in deliveries], self._domain
        )
        whole = join_entries(entries)
        mail = OutgoingMail(
            message_id=message_id,
            subject=whole.subject,
            text=whole.text,
            html=whole.html,
            sent_at=self._tools.clock.now(),
            list_id=self._list_id,
            extra=(("X-Tocsin-Event", "digest"),),
        )
        return ComposedMail(mail, MailThread(message_id, whole.subject))

    @property
    def _list_id(self) -> str:
        """Identifier by which mail readers can sort: RFC 2919."""
        return f"<{self._tools.name}.tocsin.{self._domain}>"
