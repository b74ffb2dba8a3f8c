"""Ticketing channel, and the registry of trackers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from difflib import get_close_matches
from functools import cache
from importlib.metadata import entry_points
from typing import Any, Self

import orjson
from pydantic import ValidationError, model_validator

from tocsin import (
    Delivery,
    Event,
    Health,
    IncidentDisposition,
    Json,
    ObjectChannel,
    Observable,
    PushRequest,
    RemoteStatus,
    Ticket,
    TicketSettings,
    Tools,
    Tracker,
    find_unmapped,
    require_status_interval,
)

GROUP = "tocsin.trackers"


class TicketingSettings(TicketSettings):
    """Settings of a tracker destination."""

    @model_validator(mode="before")
    @classmethod
    def _set_default_template(cls, given: Any) -> Any:
        if isinstance(given, dict) and isinstance(given.get("tracker"), str):
            return {"template": load_tracker(given["tracker"]).receiver, **given}
        return given

    @model_validator(mode="after")
    def _validate_options(self) -> Self:
        kind = load_tracker(self.tracker)
        try:
            kind.Options.model_validate(dict(self.options))
        except ValidationError as error:
            raise ValueError(_describe_option_errors(error, kind)) from None
        if self.options.get("close_as") and not (self.close_when and self.follow_changes):
            message = "also set close_when and follow_changes, or remove this option"
            raise ValueError(f"options.close_as: {message}")
        return self

    @model_validator(mode="after")
    def _reject_reserved_fields(self) -> Self:
        reserved = load_tracker(self.tracker).reserved
        if taken := sorted(name for name in self.fields if name.casefold() in reserved):
            names = ", ".join(f"fields.{name}" for name in taken)
            them = "it" if len(taken) == 1 else "them"
            message = f"Tocsin sets {names} itself; remove {them}, or change the template"
            raise ValueError(message)
        return self

    @model_validator(mode="after")
    def _require_statuses(self) -> Self:
        if self.status_interval is not None and not load_tracker(self.tracker).status_batch:
            message = f"status_interval: the tracker {self.tracker!r} cannot report statuses"
            raise ValueError(f"{message}; remove the setting")
        return self

    @model_validator(mode="after")
    def _require_webhooks(self) -> Self:
        if self.webhook_secret is None:
            return self
        if not load_tracker(self.tracker).accepts_webhooks:
            message = f"webhook_secret: Tocsin does not accept webhooks from {self.tracker!r}"
            raise ValueError(f"{message}; remove the setting")
        require_status_interval(self)
        return self


class Ticketing(ObjectChannel[TicketingSettings]):
    """Creates tickets, comments on them and closes them."""

    parts = ("body", "note", "summary")

    def __init__(self, settings: Any, tools: Tools) -> None:
        """Store the arguments; perform no I/O."""
        super().__init__(settings, tools)
        kind = load_tracker(settings.tracker)
        options = kind.Options.model_validate(dict(settings.options))
        self.tracker = kind(settings, options, tools, self.request)
        self.settling, self.status_batch = kind.settling, kind.status_batch

    @property
    def tenant_key(self) -> str:
        """The tracker, its URL and the project."""
        return f"{self.settings.tracker} {self.settings.url} {self.settings.project}"

    def authorization(self) -> Mapping[str, str]:
        """Return the authentication headers."""
        return self.tracker.authorization()

    async def check(self) -> Health:
        """Return what the tracker reports about the project, and problems with `resolutions`."""
        health = await self.tracker.check()
        if not self.settings.resolutions:
            return health
        unmapped = find_unmapped(self.settings, await self.list_closed_statuses())
        return replace(health, problems=(*health.problems, *unmapped))

    def render_body(self, delivery: Delivery) -> dict[str, Any]:
        """Return the parts of an event's ticket: the rendered body, the priority and the fields."""
        body: dict[str, Any] = orjson.loads(delivery.render(self.tracker.part))
        event = delivery.event
        return {"body": body, "priority": self._priority(delivery), "fields": self._fields(event)}

    async def find(self, key: str) -> str | None:
        """Return the ticket with this key."""
        return await self.tracker.find(key)

    async def create(
        self,
        key: str,
        body: dict[str, Any],
        observables: Sequence[Observable],  # noqa: ARG002 - the text contains them
    ) -> tuple[str, bool]:
        """Create a ticket, and return its ID and True, because `find` did not find a ticket."""
        return await self.tracker.create(Ticket(key=key, **body)), True

    async def update(self, identifier: str, delivery: Delivery) -> None:
        """Update a ticket's priority and fields."""
        ticket = Ticket(key=delivery.event.key, **self.render_body(delivery))
        await self.tracker.update(identifier, ticket)

    async def is_open(self, identifier: str) -> bool | None:
        """Return whether a ticket is open."""
        return await self.tracker.is_open(identifier)

    def render_note(self, delivery: Delivery) -> str | None:
        """Return an event's comment, if it has one."""
        if delivery.event.template_type not in self.settings.comment_on:
            return None
        part = "note" if self.settings.attach_report else "summary"
        return delivery.render(part).decode()

    async def list_notes(self, identifier: str) -> Sequence[str]:
        """Return a ticket's comments."""
        return await self.tracker.list_notes(identifier)

    async def add_note(self, identifier: str, title: str, text: str) -> None:
        """Comment on a ticket."""
        await self.tracker.add_note(identifier, f"{title}\n\n{text}")

    async def close(self, identifier: str, reason: str) -> None:
        """Close a ticket."""
        await self.tracker.close(identifier, reason)

    async def close_as(
        self, identifier: str, reason: str, disposition: IncidentDisposition | None
    ) -> None:
        """Close a ticket with the resolution for a disposition."""
        await self.tracker.close_as(identifier, reason, disposition)

    async def explain_closed(self, identifier: str, reason: str) -> None:
        """Comment on a closed ticket, unless a comment already gives the reason."""
        await self.tracker.explain_closed(identifier, reason)

    async def read_statuses(self, identifiers: Sequence[str]) -> Mapping[str, RemoteStatus]:
        """Return the statuses of tickets."""
        return await self.tracker.read_statuses(identifiers)

    async def list_closed_statuses(self) -> Sequence[str]:
        """Return the names of the statuses that closed tickets can have."""
        return await self.tracker.list_closed_statuses()

    @classmethod
    def parse_webhook(
        cls, settings: TicketingSettings, request: PushRequest, now: datetime
    ) -> Sequence[str]:
        """Return the tickets that a webhook from the tracker names."""
        return load_tracker(settings.tracker).parse_webhook(settings, request, now)

    def link(self, identifier: str) -> str:
        """Return the URL of a ticket's page."""
        return self.tracker.link(identifier)

    def _priority(self, delivery: Delivery) -> str | None:
        severity = delivery.event.severity
        table = delivery.contract.severity if delivery.contract else {}
        word = self.settings.priorities.get(severity, table.get(severity))
        return None if word is None else str(word)

    def _fields(self, event: Event) -> dict[str, Json]:
        """Return the values of the operator's extra fields for an event.

        Fields whose expressions fail are omitted, because the ticket is more important.
        """
        found, reasons = self.settings.evaluate_fields(event)
        for name, reason in reasons.items():
            self.tools.log.warning("ticket field omitted", field=name, id=event.id, reason=reason)
        return {name: value for name, value in found.items() if value not in (None, "")}


@cache
def load_tracker(name: str) -> type[Tracker]:
    """Return the tracker class with this name, without importing other trackers.

    Raises ValueError, which lists the known names, if the name is unknown or not a tracker.
    """
    found = entry_points(group=GROUP, name=name)
    if not found:
        known = sorted({entry_point.name for entry_point in entry_points(group=GROUP)})
        near = get_close_matches(name, known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"unknown tracker {name!r}; use one of: {', '.join(known)}{hint}")
    try:
        kind = next(iter(found)).load()
    except (Exception, SystemExit) as error:
        raise ValueError(f"the tracker {name!r} cannot be imported: {error}") from error
    if not (isinstance(kind, type) and issubclass(kind, Tracker)):
        message = f"the tracker {name!r} is not a `tocsin.Tracker`"
        raise ValueError(message)  # noqa: TRY004 - validation reports it as an invalid setting
    return kind


def _describe_option_errors(error: ValidationError, kind: type[Tracker]) -> str:
    """Describe what is wrong with a tracker's options."""
    known = ", ".join(kind.Options.model_fields)
    return "; ".join(
        f"options.{'.'.join(map(str, problem['loc']))}: {_describe_problem(problem, known)}"
        for problem in error.errors(include_url=False, include_input=False, include_context=False)
    )


def _describe_problem(problem: Mapping[str, Any], known: str) -> str:
    if problem["type"] == "extra_forbidden":
        return f"unknown option; use one of: {known}" if known else "the tracker has no options"
    return str(problem["msg"])
