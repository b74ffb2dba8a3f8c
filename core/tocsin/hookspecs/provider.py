"""Base class of providers, which connect to SIEMs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field

from tocsin.fields import Duration, PluginSettings, any_case
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


@dataclass(frozen=True, slots=True, kw_only=True)
class PushRequest:
    """What someone sent to `/api/push/<name>`, not judged yet."""

    headers: Mapping[str, str]
    """Names match in any case."""
    body: bytes


class Capability(StrEnum):
    """What a provider can do beside reading on; it has each whose method it overrides."""

    REREAD = "reread"
    """Read one incident again, by its id: `incident`."""
    BACKFILL = "backfill"
    """Read a stretch of the past: `backfill`."""
    PUSH = "push"
    """Take what is sent to it: `receive`."""
    EVENTS = "events"
    """Find events of an entity: `events`."""
    COMMENT = "comment"
    """Write a comment to an incident: `comment`."""
    STATUS = "status"
    """Set where an incident stands: `set_status`."""


def _parse_capability(status: IncidentStatus) -> IncidentStatus:
    """Return the status; ValueError for one that an investigation by rules does not lead to."""
    if status is IncidentStatus.CLOSED:
        raise ValueError("give 'Active': only a person closes an incident")
    if status is IncidentStatus.NEW:
        raise ValueError("give 'Active', or leave it out: the incident is New as it is")
    return status


class Provider(ABC):
    """A connection to one SIEM; one is made for each [providers.<name>].

    One is read by one node at a time, and there never concurrently.
    """

    class Settings(PluginSettings):
        """What every provider can be told; derive yours from it."""

        plugin: str = Field(description="The provider's kind: the name of an enabled plugin.")
        poll_interval: Duration = Field(
            default=timedelta(minutes=1),
            gt=timedelta(0),
            description="How long to wait between two reads.",
        )
        quiet_first_fetch: bool = Field(
            default=False, description="Send no alerts for what the very first read brings."
        )
        alert_on_escalation: bool = Field(
            default=False,
            description="Also alert when an incident first seen below Medium rises to it.",
        )
        tlp: Annotated[Tlp, any_case(Tlp)] = Field(
            default=Tlp.AMBER,
            description="With whom its incidents may be shared (Traffic Light Protocol): clear, "
            "green, amber, amber+strict or red.",
        )
        pap: Annotated[Pap, any_case(Pap)] = Field(
            default=Pap.AMBER,
            description="What may be done with them (Permissible Actions Protocol): clear, green, "
            "amber or red.",
        )
        write_back: bool = Field(
            default=False,
            description="Write the summary of an investigation to the incidents that it was about, "
            "as a comment at the SIEM.",
        )
        write_back_status: (
            Annotated[
                IncidentStatus,
                any_case(IncidentStatus),
                AfterValidator(_parse_capability),
            ]
            | None
        ) = Field(
            default=None,
            description="An incident that is still New at the SIEM gets this status once the "
            "comment of a completed investigation was written: Active. Needs `write_back`, but "
            "where its plugin can write no comments.",
        )

        @property
        def marking(self) -> Marking:
            """How its incidents are marked."""
            return Marking(self.tlp, self.pap)

    permissions: ClassVar[tuple[str, ...]] = ()
    """What the credentials must be allowed to do at the SIEM, in its own words."""

    event_kinds: ClassVar[frozenset[EntityKind]] = frozenset(EntityKind)
    """What `events` can be asked for."""

    clock_skew: timedelta | None = None
    """How far the SIEM's clock was ahead of ours when last asked; None where that is not known."""

    def __init__(self, settings: Any, tools: Tools) -> None:
        """Keep what is needed; do no I/O. `settings` is an instance of this class's `Settings`."""
        self.settings = settings
        self.tools = tools

    @classmethod
    def capabilities(cls) -> frozenset[Capability]:
        """Return what this provider can do beside reading on."""
        methods = {
            Capability.REREAD: (cls.incident, Provider.incident),
            Capability.BACKFILL: (cls.backfill, Provider.backfill),
            Capability.PUSH: (cls.receive, Provider.receive),
            Capability.EVENTS: (cls.events, Provider.events),
            Capability.COMMENT: (cls.comment, Provider.comment),
            Capability.STATUS: (cls.set_status, Provider.set_status),
        }
        return frozenset(name for name, (own, base) in methods.items() if own is not base)

    async def start(self) -> None:
        """Get ready, once. Raising leaves this provider out, with the reason."""

    @abstractmethod
    async def check(self) -> Health:
        """Return whether the SIEM can be reached, and which permissions are missing."""

    def streams(self) -> Sequence[str]:
        """Return the names of what is read separately, each with a position of its own."""
        return ("changed",)

    @abstractmethod
    def read(
        self, stream: str, position: Mapping[str, Any] | None, until: datetime
    ) -> AsyncGenerator[Page, None]:
        """Yield pages from `position` on, and end when everything up to `until` was read.

        `position` is the `next_position` of the last page that was stored, or None at the very
        first read. Each page is stored together with its `next_position` before the next one is
        asked for, so a crash repeats a page or does not, but never loses one. Whoever reads may
        stop after any page, to go on later.
        """

    async def incident(self, external_id: str) -> Incident | None:
        """Return the incident as the SIEM has it now, None where it has it no more.

        It is asked for as long after the incident was new as the setting `reread_after` has it,
        where there is one: a tuple of durations, in order. Of what a backfill brought, it is asked
        only for incidents that are younger than the last of them.
        """
        raise NotImplementedError

    def backfill(
        self, stream: str, position: Mapping[str, Any] | None, window: Window
    ) -> AsyncGenerator[Page, None]:
        """Yield pages of what changed or happened in a window of the past, and end with it.

        `position` is as in `read`, and apart from that of the stream.
        """
        raise NotImplementedError

    async def receive(self, request: PushRequest) -> Received:
        """Return what someone sent; the sender is answered once it is stored.

        Raises `CredentialsRefused` where the request does not prove that it may, and `Refused`
        where it holds nothing that can be understood. Derive from `PushProvider`, which judges
        credentials.
        """
        raise NotImplementedError

    def events(self, entity: Entity, window: Window, limit: int) -> AsyncGenerator[SiemEvent, None]:
        """Yield events that have to do with an entity and occurred in a window, `limit` at most.

        The latest, where there are more, in any order. It is asked side by side with `read`, and
        may take up to two minutes. Raises as `read` does.
        """
        raise NotImplementedError

    async def comment(self, external_id: str, text: str, key: str) -> None:
        """Write a comment, in plain text, to an incident.

        Where `key` was written before, nothing is: it stands for one comment, however often that
        is tried. Raises `Refused` where it can never be written.
        """
        raise NotImplementedError

    async def set_status(self, external_id: str, status: IncidentStatus) -> None:
        """Have an incident stand so, and leave the rest of it as it is.

        Where it stands there already, nothing is written. Raises `Refused` where it can never
        stand so, or is not there.
        """
        raise NotImplementedError
