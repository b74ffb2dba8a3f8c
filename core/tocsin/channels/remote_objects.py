"""Channels that keep one object for each incident, session or schedule.

Subclasses define only the requests to their platform.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any, ClassVar, Self
from weakref import WeakValueDictionary

import orjson
from pydantic import Field, model_validator
from typing_extensions import TypeVar

from tocsin.channels.event_fields import (
    Observable,
    build_closing_reason,
    build_note_title,
    build_object_key,
    find_disposition,
    is_about_object,
    is_failure,
    list_known_objects,
    list_observables,
    list_recovered_objects,
)
from tocsin.channels.object_updates import ObjectUpdate, build_receipt
from tocsin.conditions import Condition, ConditionText
from tocsin.errors import TryLater
from tocsin.fields import Duration, ServerUrl
from tocsin.hookspecs import Channel, PushRequest, Tools
from tocsin.model import (
    ChangeType,
    Delivery,
    Event,
    EventType,
    IncidentDisposition,
    Json,
    Receipt,
    RemoteStatus,
)
from tocsin.providers import Api, ApiResponse

_RECOVERED = "A later run of the schedule completed."
_MOST_NOTE = 30_000


S = TypeVar("S", bound="ObjectChannel.Settings", default=Any)


class ObjectChannel(Channel[S]):
    """Base class for channels that keep one object for each incident, session or schedule.

    The channel adds later events about the same subject to the object. Before the channel creates
    an object or adds a note, it checks whether that object or note already exists. If an attempt is
    interrupted, the next one therefore completes the delivery without repeating a step.
    """

    class Settings(Channel.Settings):
        """Settings shared by all destinations that keep such objects."""

        url: ServerUrl = Field(description="The platform's URL, such as https://soar.example.com.")
        timeout: Duration = Field(
            default=timedelta(seconds=60), description="Time limit for each delivery attempt."
        )
        concurrency: int = Field(
            default=4, ge=1, le=256, description="Maximum number of concurrent deliveries per node."
        )
        close_when: ConditionText | None = Field(
            default=None,
            description="Tocsin closes the object after an event for which this condition is true, "
            "such as `context.report.verdict == 'benign'`.",
        )
        close_recovered: bool = Field(
            default=False,
            description="Whether Tocsin closes the object for a schedule's failures when a later "
            "run completes.",
        )
        follow_changes: bool = Field(
            default=False,
            description="Whether Tocsin adds the reports of investigations that people start. With "
            "`true`, Tocsin also updates a tracker's ticket when the severity changes. It also "
            "evaluates `close_when` when the severity, status or disposition changes. To close the "
            "object with the incident, set `close_when` to `data.status == 'Closed'`.",
        )

        @model_validator(mode="after")
        def _require_changes(self) -> Self:
            if getattr(self, "close_as", None) and not (self.close_when and self.follow_changes):
                raise ValueError("close_as: also set close_when and follow_changes, or remove it")
            if "data.disposition" in (self.close_when or "") and not self.follow_changes:
                message = "also set follow_changes; without it, events do not contain dispositions"
                raise ValueError(f"close_when: {message}")
            return self

    ordered: ClassVar[bool] = True
    parts: ClassVar[tuple[str, ...]] = ("body", "summary")
    note_part: ClassVar[str] = "summary"
    """Part that renders a note: `summary` (a few lines and a link) or `note` (the full report).
    Use `summary` if full reports would make the responses that list notes too long."""
    settling: timedelta | None = None
    """How long the platform's search can miss a new object; None if the platform supports unique
    keys, so that no search is necessary."""

    status_batch: int = 0
    """How many objects one call of `read_statuses` can read; 0 if you do not implement it."""

    def __init__(self, settings: Any, tools: Tools) -> None:
        """Store the settings and tools; do not perform I/O."""
        super().__init__(settings, tools)
        self.api = Api(tools, settings)
        self._locks = WeakValueDictionary[str, asyncio.Lock]()

    @property
    def tenant_key(self) -> str:
        """The platform's URL; override this property to add further identifiers, such as a
        project.
        """
        return str(self.settings.url)

    # defined by the platform

    def authorization(self) -> Mapping[str, str]:
        """Return the headers that authenticate requests; empty if `api` signs in."""
        return {}

    def list_secrets(self) -> Iterable[str]:
        """Return the secrets in the settings and in the headers that `authorization` returns."""
        values = self.authorization().values()
        return *super().list_secrets(), *(value.rpartition(" ")[2] for value in values)

    @abstractmethod
    async def find(self, key: str) -> str | None:
        """Return the ID of the object with this key, or None if there is none."""

    @abstractmethod
    async def create(
        self, key: str, body: dict[str, Any], observables: Sequence[Observable]
    ) -> tuple[str, bool]:
        """Create an object with this key, unless it exists; return its ID and whether it is new.

        If the object is new, it has all observables. An existing object can lack some of them.
        """

    @abstractmethod
    async def is_open(self, identifier: str) -> bool | None:
        """Return whether an object is open; None if the ID is unknown."""

    def select_observables(
        self,
        delivery: Delivery,  # noqa: ARG002 - for platforms with observables
    ) -> Sequence[Observable]:
        """Return which of an event's entities become observables; by default, none."""
        return ()

    async def add_observables(
        self,
        identifier: str,  # noqa: ARG002 - for platforms with observables
        observables: Sequence[Observable],  # noqa: ARG002
    ) -> int:
        """Add the observables that an object lacks, and return how many were added."""
        return 0

    def render_body(self, delivery: Delivery) -> dict[str, Any]:
        """Return the rendered body of a new object for an event."""
        body: dict[str, Any] = orjson.loads(delivery.render("body"))
        return body

    async def update(self, identifier: str, delivery: Delivery) -> None:
        """Update an object after a later event about the same subject."""

    def render_note(self, delivery: Delivery) -> str | None:
        """Return an event's note in Markdown; None if the event does not add a note."""
        is_alert = delivery.event.event_type is EventType.INCIDENT_ALERT
        return None if is_alert else delivery.render(self.note_part).decode()

    @abstractmethod
    async def list_notes(self, identifier: str) -> Sequence[str]:
        """Return the texts of an object's notes."""

    @abstractmethod
    async def add_note(self, identifier: str, title: str, text: str) -> None:
        """Add a note in Markdown to an object."""

    @abstractmethod
    async def close(self, identifier: str, reason: str) -> None:
        """Close an open object."""

    async def close_as(
        self,
        identifier: str,
        reason: str,
        disposition: IncidentDisposition | None,  # noqa: ARG002 - for platforms with resolutions
    ) -> None:
        """Close an open object and set the resolution for a disposition.

        The default implementation calls `close`. Override this method if operators map dispositions
        to the platform's resolutions.
        """
        await self.close(identifier, reason)

    async def explain_closed(self, identifier: str, reason: str) -> None:
        """Add the reason to a closed object, unless the object already has the reason.

        Implement this method if `close` adds the reason in a separate request after it closes the
        object, because an attempt can be interrupted between the two requests.
        """

    async def read_statuses(self, identifiers: Sequence[str]) -> Mapping[str, RemoteStatus]:
        """Return the statuses of objects by ID, without objects that no longer exist.

        Tocsin calls this method for destinations that set `status_interval`. If you implement this
        method, declare the setting `status_interval` as a `StatusInterval`, and set `status_batch`.
        Raises the same errors as `deliver`.
        """
        raise NotImplementedError

    async def list_closed_statuses(self) -> Sequence[str]:
        """Return the names of the statuses that closed objects can have in the receiver.

        If you implement this method, declare the setting `resolutions` as `Resolutions`. In
        `check`, pass the result to `find_unmapped`.
        """
        raise NotImplementedError

    @classmethod
    def parse_webhook(cls, settings: Any, request: PushRequest, now: datetime) -> Sequence[str]:
        """Return the IDs of the objects that a webhook from the receiver names.

        The IDs can also be those of parent objects, if `read_statuses` returns them as `parent_id`.
        Tocsin then asks the receiver for the statuses of these objects; it does not use anything
        else from the body. Before you parse the body, check that the sender knows
        `settings.webhook_secret`; otherwise, raise `CredentialsRefused`. Do not perform I/O. If you
        implement this method, declare the setting `webhook_secret` as a `WebhookSecret`.
        """
        raise NotImplementedError

    @abstractmethod
    def link(self, identifier: str) -> str:
        """Return the URL at which people open the object."""

    # common to all platforms

    async def deliver(self, delivery: Delivery) -> Receipt:
        """Add an event to the existing objects that it belongs to, or to a new object."""
        event = delivery.event
        done = [await self._add_to(place, delivery) for place in await self._places(delivery)]
        if not done:
            done.append(await self._make(delivery))
        if self._ends(event):
            for each in done:
                await self._close(each, build_closing_reason(event), delivery)
        if self.settings.close_recovered:
            for identifier in list_recovered_objects(delivery):
                recovered = ObjectUpdate(identifier)
                await self._close(recovered, f"{_RECOVERED} {event.id}", delivery)
                done.append(recovered)
        status = HTTPStatus.CREATED if done[0].made else HTTPStatus.OK
        receipt = build_receipt(done, status)
        return replace(receipt, remote_id=done[0].id, remote_url=self.link(done[0].id))

    async def follow(self, delivery: Delivery) -> Receipt:
        """After an incident changes, update its existing objects or add a report to them."""
        event = delivery.event
        done = []
        for identifier in await self._places(delivery):
            update = ObjectUpdate(identifier)
            if event.event_type is ChangeType.INVESTIGATION_FINISHED:
                async with self._alone_at(identifier):
                    update.noted = await self._note(identifier, delivery)
            elif "severity" in event.data["changes"]:
                async with self._alone_at(identifier):
                    await self.update(identifier, delivery)
            if self._ends(event):
                await self._close(update, build_closing_reason(event), delivery)
            done.append(update)
        return build_receipt(done, HTTPStatus.OK)

    async def request(
        self, method: str, path: str, *, headers: Mapping[str, str] | None = None, **options: Any
    ) -> ApiResponse:
        """Send an authenticated request; see `Api.request` for parameters and errors."""
        shown = {**self.authorization(), **(headers or {})}
        return await self.api.request(method, path, headers=shown, **options)

    async def ask(self, method: str, path: str, **options: Any) -> Json:
        """Send an authenticated request and return the JSON body of the response."""
        return (await self.request(method, path, **options)).json

    async def _places(self, delivery: Delivery) -> Sequence[str]:
        """Return the existing objects that the event belongs to."""
        known = list_known_objects(delivery)
        return [identifier for identifier in known if await self._takes(identifier, delivery.event)]

    async def _takes(self, identifier: str, event: Event) -> bool:
        """Return whether an event belongs to an object; failures never belong to closed ones."""
        is_open = await self.is_open(identifier)
        if is_open or is_open is None or not is_failure(event):
            return is_open is not None
        return await self._is_noted(identifier, event)  # the object was closed after this event

    async def _make(self, delivery: Delivery) -> ObjectUpdate:
        key = build_object_key(delivery.event)
        observables = self.select_observables(delivery)
        done = ObjectUpdate(await self.find(key) or "")
        if not done.id:
            self._expect_searchable(delivery)
            done.id, done.made = await self.create(key, self.render_body(delivery), observables)
        async with self._alone_at(done.id):
            if delivery.event.event_type is EventType.INVESTIGATION_COMPLETED:
                done.noted = await self._note(done.id, delivery)
            if not done.made:
                done.observables = await self.add_observables(done.id, observables)
        return done

    async def _add_to(self, identifier: str, delivery: Delivery) -> ObjectUpdate:
        """Add an event to an object: the note comes first, because observables may be rejected."""
        done, event = ObjectUpdate(identifier), delivery.event
        observables = self.select_observables(delivery)
        async with self._alone_at(identifier):
            done.noted = await self._note(identifier, delivery)
            done.observables = await self.add_observables(identifier, observables)
            if identifier == delivery.remote_id and is_about_object(event):
                await self.update(identifier, delivery)
        return done

    def _alone_at(self, identifier: str) -> asyncio.Lock:
        """Return the lock that serializes this node's work on an object."""
        return self._locks.setdefault(identifier, asyncio.Lock())

    async def _is_noted(self, identifier: str, event: Event) -> bool:
        return any(event.id in text for text in await self.list_notes(identifier))

    async def _note(self, identifier: str, delivery: Delivery) -> bool:
        """Add the event as a note, unless the object already has this note."""
        event, text = delivery.event, self.render_note(delivery)
        if text is None or await self._is_noted(identifier, event):
            return False
        if is_failure(event) and delivery.previous_remote_id == identifier:
            return False  # the failure created the object or is already noted there
        signed = f"{text[:_MOST_NOTE]}\n\nTocsin event {event.id}"
        await self.add_note(identifier, build_note_title(event), signed)
        return True

    def _expect_searchable(self, delivery: Delivery) -> None:
        """Raise `TryLater` while searches may miss an object that an earlier attempt created."""
        if self.settling is None or delivery.tried_at is None:
            return
        searchable_at = delivery.tried_at + self.settings.timeout + self.settling
        wait = searchable_at - self.tools.clock.now()
        if wait > timedelta(0):
            reason = "an earlier attempt may have created the object; searches may not find it yet"
            raise TryLater(reason, after=wait, unsent=True)

    def _ends(self, event: Event) -> bool:
        if self.settings.close_when is None:
            return False
        try:
            return Condition(self.settings.close_when).holds(event.variables())
        except Exception as error:  # noqa: BLE001 - operators' expressions may raise anything
            self.tools.log.warning("close_when cannot be evaluated", id=event.id, reason=str(error))
            return False

    async def _close(self, update: ObjectUpdate, reason: str, delivery: Delivery) -> None:
        """Close an object if it is open, and record whether any attempt closed it."""
        async with self._alone_at(update.id):
            is_open = await self.is_open(update.id)
            if is_open:
                await self.close_as(update.id, reason, find_disposition(delivery.event))
                update.closed = True
            elif is_open is False and delivery.tried_at is not None:
                await self.explain_closed(update.id, reason)
                update.may_be_closed = True


CaseSettings = TypeVar("CaseSettings", bound="CaseChannel.Settings", default=Any)


class CaseChannel(ObjectChannel[CaseSettings]):
    """Base class for channels whose objects list the entities of their events as observables."""

    class Settings(ObjectChannel.Settings):
        """Settings shared by all destinations that keep objects with observables."""

        most_entities: int = Field(
            default=100, ge=0, le=500, description="Maximum number of entities sent per event."
        )

    parts: ClassVar[tuple[str, ...]] = ("body", "note")
    note_part: ClassVar[str] = "note"

    def select_observables(self, delivery: Delivery) -> Sequence[Observable]:
        """Return an event's first entities, at most `most_entities` of them."""
        return list_observables(delivery, self.settings.most_entities)
