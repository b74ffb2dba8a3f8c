"""Channels that keep one object for what an event is about: a case, an alert, a ticket.

Each says only how its platform is asked.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from http import HTTPStatus
from typing import Any, ClassVar
from weakref import WeakValueDictionary

import orjson
from pydantic import Field

from tocsin.channels.event_fields import (
    Observable,
    build_object_key,
    is_about_object,
    is_failure,
    list_known_objects,
    list_observables,
    list_recovered_objects,
)
from tocsin.conditions import Condition, ConditionText
from tocsin.errors import TryLater
from tocsin.fields import Duration, ServerUrl
from tocsin.hookspecs import Channel, Tools
from tocsin.model import Delivery, Event, EventType, Json, Receipt
from tocsin.providers import Api, ApiResponse

_RECOVERED = "A later run of the schedule completed."
_CLOSED = "Closed by Tocsin, as its configuration has it."
_MOST_NOTE = 30_000


@dataclass(slots=True)
class ObjectUpdate:
    """What a delivery has done to one object; it is what the receipt tells."""

    id: str
    made: bool = False
    observables: int = 0
    """How many were added to what was there."""
    noted: bool = False
    closed: bool = False


class CaseChannel(Channel):
    """Makes one object for what an event is about, and adds to it what later events tell.

    Everything is looked for before it is made, so that an attempt that ended in the middle, or of
    which nothing is known, is finished by the next one and never repeated.
    """

    class Settings(Channel.Settings):
        """What every destination can be told that keeps such objects."""

        url: ServerUrl = Field(
            description="Where the platform is, such as https://soar.example.com."
        )
        timeout: Duration = Field(
            default=timedelta(seconds=60), description="How long one attempt may take; 60s at most."
        )
        concurrency: int = Field(
            default=4, ge=1, le=256, description="How many deliveries may be under way at once."
        )
        most_entities: int = Field(
            default=100, ge=0, le=500, description="How many entities of one event are handed on."
        )
        close_when: ConditionText | None = Field(
            default=None,
            description="Close the object after an event of which this is true, such as "
            "`context.report.verdict == 'benign'`.",
        )
        close_recovered: bool = Field(
            default=False,
            description="Close the object of a schedule's failures when a later run completes.",
        )

    ordered: ClassVar[bool] = True
    parts: ClassVar[tuple[str, ...]] = ("body", "note")
    settling: timedelta | None = None
    """How long the platform's search may not find what was just made; None where the platform has
    a key of its own, so that nothing has to be found."""

    settings: Settings

    def __init__(self, settings: Any, tools: Tools) -> None:
        """Keep what is needed; do no I/O."""
        super().__init__(settings, tools)
        self.api = Api(tools, settings)
        self._locks = WeakValueDictionary[str, asyncio.Lock]()

    @property
    def tenant_key(self) -> str:
        """The address of the platform; add what else tells one place there from another."""
        return str(self.settings.url)

    # what a platform says

    def authorization(self) -> Mapping[str, str]:
        """Return the headers that say who asks; nothing where `api` signs in by itself."""
        return {}

    @abstractmethod
    async def find(self, key: str) -> str | None:
        """Return the id of the object that has this key, None where there is none."""

    @abstractmethod
    async def make(
        self, key: str, body: dict[str, Any], observables: Sequence[Observable]
    ) -> tuple[str, bool]:
        """Return the id of the object that has this key, and whether it was made just now.

        An object that was made has the observables; one that was there may lack some.
        """

    @abstractmethod
    async def is_open(self, identifier: str) -> bool | None:
        """Return whether an object is open, None where there is none of this id any more."""

    async def add_observables(
        self,
        identifier: str,  # noqa: ARG002 - a platform's that has observables
        observables: Sequence[Observable],  # noqa: ARG002
    ) -> int:
        """Return how many observables were added to an object: those that it does not have."""
        return 0

    def render_body(self, delivery: Delivery) -> dict[str, Any]:
        """Return what an event makes of a new object, as the templates have it."""
        body: dict[str, Any] = orjson.loads(delivery.render("body"))
        return body

    async def update(self, identifier: str, delivery: Delivery) -> None:
        """Bring an object up to date with a later event of what it is about."""

    def render_note(self, delivery: Delivery) -> str | None:
        """Return what an event adds to an object as a note, in Markdown; None where nothing."""
        return None if _is_alert(delivery.event) else delivery.render("note").decode()

    @abstractmethod
    async def notes(self, identifier: str) -> Sequence[str]:
        """Return the texts of an object's notes."""

    @abstractmethod
    async def add_note(self, identifier: str, title: str, text: str) -> None:
        """Add a note, Markdown, to an object."""

    @abstractmethod
    async def close(self, identifier: str, reason: str) -> None:
        """Close an object that is open."""

    @abstractmethod
    def link(self, identifier: str) -> str:
        """Return where a person can look at an object."""

    # what follows from that

    async def deliver(self, delivery: Delivery) -> Receipt:
        """Bring what the event tells to the objects that it belongs to, or to a new one."""
        event = delivery.event
        done = [await self._add_to(place, delivery) for place in await self._places(delivery)]
        if not done:
            done.append(await self._make(delivery))
        if self._ends(event):
            for each in done:
                each.closed = await self._close(each.id, _CLOSED)
        if self.settings.close_recovered:
            for identifier in list_recovered_objects(delivery):
                closed = await self._close(identifier, f"{_RECOVERED} {event.id}")
                done.append(ObjectUpdate(identifier, closed=closed))
        status = HTTPStatus.CREATED if done[0].made else HTTPStatus.OK
        told = orjson.dumps({"objects": done})
        return Receipt(
            status=status, response=told, remote_id=done[0].id, remote_url=self.link(done[0].id)
        )

    async def request(
        self, method: str, path: str, *, headers: Mapping[str, str] | None = None, **options: Any
    ) -> ApiResponse:
        """Return what the platform answers to us; takes and raises what `Api.request` does."""
        shown = {**self.authorization(), **(headers or {})}
        return await self.api.request(method, path, headers=shown, **options)

    async def ask(self, method: str, path: str, **options: Any) -> Json:
        """Return the body of what the platform answers."""
        return (await self.request(method, path, **options)).json

    async def _places(self, delivery: Delivery) -> Sequence[str]:
        """Return the objects that the event belongs to and that are there."""
        known = list_known_objects(delivery)
        return [it for it in known if await self._takes(it, delivery.event)]

    async def _takes(self, identifier: str, event: Event) -> bool:
        """Return whether an event belongs to an object: a failure not to one that was closed."""
        is_open = await self.is_open(identifier)
        if is_open or is_open is None or not is_failure(event):
            return is_open is not None
        return await self._is_noted(identifier, event)  # it was closed afterwards

    async def _make(self, delivery: Delivery) -> ObjectUpdate:
        key = build_object_key(delivery.event)
        observables = list_observables(delivery, self.settings.most_entities)
        done = ObjectUpdate(await self.find(key) or "")
        if not done.id:
            self._expect_searchable(delivery)
            done.id, done.made = await self.make(key, self.render_body(delivery), observables)
        async with self._alone_at(done.id):
            if delivery.event.event_type is EventType.INVESTIGATION_COMPLETED:
                done.noted = await self._note(done.id, delivery)
            if not done.made:
                done.observables = await self.add_observables(done.id, observables)
        return done

    async def _add_to(self, identifier: str, delivery: Delivery) -> ObjectUpdate:
        """Add what an event tells: the note first, since observables may be refused."""
        done, event = ObjectUpdate(identifier), delivery.event
        observables = list_observables(delivery, self.settings.most_entities)
        async with self._alone_at(identifier):
            done.noted = await self._note(identifier, delivery)
            done.observables = await self.add_observables(identifier, observables)
            if identifier == delivery.remote_id and is_about_object(event):
                await self.update(identifier, delivery)
        return done

    def _alone_at(self, identifier: str) -> asyncio.Lock:
        """Return what keeps others of this node from looking and adding at the same moment."""
        return self._locks.setdefault(identifier, asyncio.Lock())

    async def _is_noted(self, identifier: str, event: Event) -> bool:
        return any(event.id in text for text in await self.notes(identifier))

    async def _note(self, identifier: str, delivery: Delivery) -> bool:
        """Add what the event tells as a note, unless it is there."""
        event, text = delivery.event, self.render_note(delivery)
        if text is None or await self._is_noted(identifier, event):
            return False
        if is_failure(event) and delivery.previous_remote_id == identifier:
            return False  # it is what the object was made of, or noted there
        signed = f"{text[:_MOST_NOTE]}\n\nTocsin event {event.id}"
        await self.add_note(identifier, _note_title(event), signed)
        return True

    def _expect_searchable(self, delivery: Delivery) -> None:
        """Raise `TryLater` while an earlier attempt may have made what cannot be found yet."""
        if self.settling is None or delivery.tried_at is None:
            return
        searchable_at = delivery.tried_at + self.settings.timeout + self.settling
        wait = searchable_at - self.tools.clock.now()
        if wait > timedelta(0):
            reason = "an earlier attempt may have made it, and a search would not find that yet"
            raise TryLater(reason, after=wait, unsent=True)

    def _ends(self, event: Event) -> bool:
        if self.settings.close_when is None:
            return False
        try:
            return Condition(self.settings.close_when).holds(event.variables())
        except Exception as error:  # noqa: BLE001 - whatever an operator's expression does
            self.tools.log.warning("close_when cannot be decided", id=event.id, reason=str(error))
            return False

    async def _close(self, identifier: str, reason: str) -> bool:
        """Close an object that is open; return whether it was."""
        async with self._alone_at(identifier):
            if not await self.is_open(identifier):
                return False
            await self.close(identifier, reason)
        return True


def _is_alert(event: Event) -> bool:
    return event.event_type is EventType.INCIDENT_ALERT


def _note_title(event: Event) -> str:
    return {
        EventType.INVESTIGATION_COMPLETED: "Tocsin: investigation completed",
        EventType.INVESTIGATION_FAILED: "Tocsin: scheduled investigation failed",
        EventType.SCHEDULE_DISABLED: "Tocsin: schedule disabled",
    }.get(event.event_type, "Tocsin")
