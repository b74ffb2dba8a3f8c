"""Base class for providers, which connect to SIEMs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field, WithJsonSchema
from typing_extensions import TypeVar

from tocsin.fields import Duration, PluginSettings, any_case
from tocsin.hookspecs.configurable import Configurable
from tocsin.hookspecs.retirement import ApiRetirement
from tocsin.hookspecs.tools import Tools
from tocsin.model import (
    Entity,
    EntityKind,
    Health,
    Incident,
    IncidentStatus,
    Marking,
    Page,
    Pap,
    Received,
    SiemEvent,
    Tlp,
    Window,
)
from tocsin.shapes import RecordContract, ShapeRecorder


@dataclass(frozen=True, slots=True, kw_only=True)
class PushRequest:
    """A request to an endpoint for pushes, webhooks or message buttons, before authentication.

    The endpoints are `/api/push/<provider>`, `/api/ticket-events/<destination>` and
    `/api/message-actions/<destination>`.
    """

    headers: Mapping[str, str]
    """Header names are case-insensitive."""
    body: bytes


class Capability(StrEnum):
    """Optional capabilities of providers.

    A provider has a capability if it overrides the method that is listed for the capability.
    """

    REFRESH = "refresh"
    """Read one incident again by its ID: `incident`."""
    BACKFILL = "backfill"
    """Read a past window: `backfill`."""
    PUSH = "push"
    """Receive pushed requests: `receive`."""
    EVENTS = "events"
    """Find events that contain an entity: `events`."""
    COMMENT = "comment"
    """Write a comment on an incident: `comment`."""
    STATUS = "status"
    """Set the status of an incident: `set_status`."""


def _parse_capability(status: IncidentStatus) -> IncidentStatus:
    """Return the status; ValueError for one that an automatic investigation may not set."""
    if status is IncidentStatus.CLOSED:
        raise ValueError("use 'Active'; Tocsin does not close incidents in the SIEM automatically")
    if status is IncidentStatus.NEW:
        raise ValueError("use 'Active', or omit the setting: the incident is already New")
    return status


S = TypeVar("S", bound="Provider.Settings", default=Any)


class Provider(Configurable[S], ABC):
    """Base class for providers, which connect to SIEMs.

    Tocsin creates one instance for each table [providers.<name>]. Only one node at a time reads
    from a provider. This node reads the provider's streams one after another.

    All methods run in the node's event loop and must not block it. Use `await`, and use
    `asyncio.to_thread` for calls that block or compute for more than a few milliseconds.
    """

    class Settings(PluginSettings):
        """Settings shared by all providers; derive your settings from this class."""

        plugin: str = Field(description="The enabled plugin that this provider uses.")
        poll_interval: Duration = Field(
            default=timedelta(minutes=1),
            gt=timedelta(0),
            description="How long Tocsin waits between two reads.",
        )
        quiet_first_fetch: bool = Field(
            default=False,
            description="If true, Tocsin stores the incidents that it finds on the first read but "
            "does not send alerts for them.",
        )
        alert_on_escalation: bool = Field(
            default=False,
            description="Whether to also send an alert when an incident's severity rises to Medium "
            "or higher after Tocsin first saw the incident with a lower severity.",
        )
        alert_when_first_seen_closed: bool = Field(
            default=True,
            description="Whether to also send alerts for incidents that are already Closed when "
            "Tocsin first sees them.",
        )
        store_alert_records: bool = Field(
            default=True,
            description="Whether to store each alert as the SIEM returned it. Tocsin does not "
            "store an alert's record if its JSON is larger than 32 KiB.",
        )
        tlp: Annotated[Tlp, any_case(Tlp)] = Field(
            default=Tlp.AMBER,
            description="The Traffic Light Protocol marking, which limits with whom data from the "
            "incidents may be shared: clear, green, amber, amber+strict or red.",
        )
        pap: Annotated[Pap, any_case(Pap)] = Field(
            default=Pap.AMBER,
            description="The Permissible Actions Protocol marking, which limits what may be done "
            "with data from the incidents: clear, green, amber or red.",
        )
        write_back: bool = Field(
            default=False,
            description="Whether to add the summary of each investigation as a comment to its "
            "incidents in the SIEM.",
        )
        write_back_status: (
            Annotated[
                IncidentStatus,
                any_case(IncidentStatus),
                AfterValidator(_parse_capability),
                WithJsonSchema({"const": IncidentStatus.ACTIVE.value}),
            ]
            | None
        ) = Field(
            default=None,
            description="The status that Tocsin gives to an investigated incident in the SIEM if "
            "the incident is still New there. Active is the only status that you can "
            "set. If the plugin can write comments, also set `write_back`, because "
            "Tocsin sets the status after it has written the comment.",
        )

        close_from_tickets: bool = Field(
            default=False,
            description="Whether to close an incident in the SIEM when people close its ticket. "
            "Works only for tickets in destinations that set `resolutions`.",
        )

        @property
        def marking(self) -> Marking:
            """The marking of the provider's incidents."""
            return Marking(self.tlp, self.pap)

        @property
        def sets_status(self) -> bool:
            """Whether Tocsin may set the status of incidents in the SIEM."""
            return self.write_back_status is not None or self.close_from_tickets

        @property
        def writes(self) -> bool:
            """Whether Tocsin may write comments or statuses to the SIEM."""
            return self.write_back or self.sets_status

    permissions: ClassVar[tuple[str, ...]] = ()
    """The permissions that the credentials need, by the names that the SIEM uses."""

    event_kinds: ClassVar[frozenset[EntityKind]] = frozenset(EntityKind)
    """The entity kinds that `events` supports."""

    settable: ClassVar[frozenset[IncidentStatus]] = frozenset(IncidentStatus)
    """The statuses that `set_status` can set, if it is implemented."""

    record_contracts: ClassVar[Mapping[str, RecordContract]] = MappingProxyType({})
    """The fields that the mapping needs, by kind of record. For a stream's records, the key is the
    stream's name. If you pass other records, such as details, to `note_shapes`, choose a key and
    pass it as `kind`. Tocsin warns if a field is missing or changes its type."""

    retirements: ClassVar[Sequence[ApiRetirement]] = ()
    """The announced retirements of APIs that the provider uses. Tocsin warns operators about
    them."""

    clock_skew: timedelta | None = None
    """How far the SIEM's clock was last known to be ahead of the local clock, negative if it is
    behind; None if unknown."""

    def __init__(self, settings: S, tools: Tools) -> None:
        """Store the arguments; do not perform I/O.

        `settings` is an instance of this class's `Settings`.
        """
        super().__init__(settings, tools)
        self.shapes = ShapeRecorder()

    @classmethod
    def capabilities(cls) -> frozenset[Capability]:
        """Return the optional capabilities of this provider."""
        methods = {
            Capability.REFRESH: (cls.incident, Provider.incident),
            Capability.BACKFILL: (cls.backfill, Provider.backfill),
            Capability.PUSH: (cls.receive, Provider.receive),
            Capability.EVENTS: (cls.events, Provider.events),
            Capability.COMMENT: (cls.comment, Provider.comment),
            Capability.STATUS: (cls.set_status, Provider.set_status),
        }
        return frozenset(name for name, (own, base) in methods.items() if own is not base)

    @classmethod
    def list_retirements(cls, settings: Any) -> tuple[ApiRetirement, ...]:
        """Return the announced retirements of APIs that a provider with these settings uses."""
        return tuple(one for one in cls.retirements if one.applies(settings))

    async def start(self) -> None:
        """Prepare the provider. Tocsin calls this method once.

        If `start` raises an error or takes more than a minute, Tocsin reports the provider as
        unavailable, with the reason.
        """

    @abstractmethod
    async def check(self) -> Health:
        """Return whether the SIEM is reachable, and which permissions are missing."""

    def streams(self) -> Sequence[str]:
        """Return the names of the provider's streams.

        A stream is a list of records that Tocsin reads separately, with its own position.
        """
        return ("changed",)

    def read_interval(self, stream: str) -> timedelta:  # noqa: ARG002
        """Return how often `read` advances a stream's coverage.

        By default, returns the poll interval. Override this method for a stream that is read less
        often. `tocsin prove` reports a stream that has not been read for an hour or for three of
        these intervals, whichever is longer.
        """
        interval: timedelta = self.settings.poll_interval
        return interval

    @abstractmethod
    def read(
        self, stream: str, position: Mapping[str, Any] | None, until: datetime
    ) -> AsyncGenerator[Page, None]:
        """Yield pages, starting at `position`, until everything up to `until` has been read.

        `position` is the `next_position` of the last stored page, or None for the first read of the
        stream. Tocsin stores each page together with its `next_position` before it requests the
        next page. After a crash, a page can therefore be repeated but not lost. Tocsin can stop
        after any page and continue later.
        """

    def note_shapes(self, kind: str, records: Sequence[Mapping[str, Any]]) -> None:
        """Record which fields the SIEM's raw records have, and the types of these fields.

        `kind` is a key in `record_contracts`; other kinds are ignored. Call this method for each
        page of new records. `WindowedProvider` calls it for the records from `list_changes`.
        """
        if contract := self.record_contracts.get(kind):
            self.shapes.record(kind, contract, records, self.tools.clock.now())

    async def sample(self, stream: str) -> Sequence[Mapping[str, Any]]:  # noqa: ARG002
        """Return some recent raw records, which `tocsin check` compares with the contract.

        By default, returns no records.
        """
        return ()

    async def incident(self, external_id: str) -> Incident | None:
        """Return the current version of an incident, or None if it no longer exists in the SIEM.

        The settings can have a field `refresh_after`, a tuple of durations in ascending order.
        Tocsin calls this method each time one of these durations has passed since Tocsin first
        stored the incident. For a backfilled incident, Tocsin calls the method only if the incident
        is younger than the last duration.
        """
        raise NotImplementedError

    def backfill(
        self, stream: str, position: Mapping[str, Any] | None, window: Window
    ) -> AsyncGenerator[Page, None]:
        """Yield pages of the changes in a past window, and stop at the window's end.

        `position` has the same meaning as in `read` but is separate from the stream's position.
        """
        raise NotImplementedError

    def receive(self, request: PushRequest) -> AsyncGenerator[Received, None]:
        """Yield the contents of a pushed request. Tocsin stores them and then responds.

        Tocsin stores each batch in a separate transaction before it asks for the next one. Raises
        `CredentialsRefused` if the request is not authentic, and `Refused` if its body cannot be
        parsed. Instead of implementing this method, you can derive from `PushProvider`, which
        checks credentials.
        """
        raise NotImplementedError

    def unpack(self, body: bytes, received_at: datetime) -> Iterable[Received]:
        """Return the contents of a pushed body in batches. Credentials are already checked.

        For incidents without a time, use `received_at`, the time of the push. If an intake is
        configured, Tocsin calls this method in a thread, for a push that `receive` has already
        accepted. If you do not implement this method, pushes to the provider do not go through the
        intake. Raises `Refused` if the body cannot be parsed.
        """
        raise NotImplementedError

    def is_authentic(self, headers: Mapping[str, str]) -> bool | None:  # noqa: ARG002
        """Authenticate a pushed request by its headers alone, before Tocsin reads the body.

        Returns whether the credentials are valid, or None if the result depends on the body.
        """
        return None

    def events(self, entity: Entity, window: Window, limit: int) -> AsyncGenerator[SiemEvent, None]:
        """Yield the events in a window that contain an entity, at most `limit` of them.

        If the window contains more events, yield the latest ones, in any order. This method runs
        concurrently with `read` and must finish within two minutes. Raises the same errors as
        `read`.
        """
        raise NotImplementedError

    async def comment(self, external_id: str, text: str, key: str) -> None:
        """Write a plain-text comment on an incident.

        The `key` identifies one comment across retries. If a comment with this key exists, do not
        write another one. Raises `Refused` if the comment can never be written.
        """
        raise NotImplementedError

    async def set_status(self, external_id: str, status: IncidentStatus) -> None:
        """Set only the status of an incident.

        If the incident already has the status, do not write anything. Raises `Refused` if the
        incident does not exist or can never have this status.
        """
        raise NotImplementedError
