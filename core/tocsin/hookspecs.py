"""Every seam of Tocsin, on one page: the hooks, and the two kinds of object that they offer.

A plugin is a module named by an entry point. It implements hooks with `hookimpl`; the entry
point's name is the name that operators write as `plugin = "..."`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, ClassVar, Protocol

import pluggy
from pydantic import Field, field_validator
from structlog.typing import FilteringBoundLogger

from tocsin.clock import Clock
from tocsin.conditions import ConditionText
from tocsin.fields import Duration, FileOnly, LocalPath, Network, PluginSettings
from tocsin.model import (
    Delivery,
    Event,
    EventType,
    Health,
    Incident,
    Page,
    Receipt,
    Received,
    Severity,
    Window,
)

hookspec = pluggy.HookspecMarker("tocsin")
hookimpl = pluggy.HookimplMarker("tocsin")
"""Marks the functions of a plugin's module that implement hooks."""


@hookspec
def tocsin_providers() -> type[Provider]:  # type: ignore[empty-body]
    """Return the kind of provider that this plugin offers. Called once, when plugins are loaded."""


@hookspec
def tocsin_channels() -> type[Channel]:  # type: ignore[empty-body]
    """Return the kind of channel that this plugin offers. Called once, when plugins are loaded."""


@hookspec
def tocsin_template_paths() -> Sequence[Path]:  # type: ignore[empty-body]
    """Return folders that hold templates, `<receiver>/<event>.json.j2`. Called once, at start."""


@hookspec
def tocsin_event(event: Event) -> None:
    """Hear of an event that is committed. Called for each; one that raises is called again later.

    What is heard goes through the queue like a delivery, so a restart loses none, but may repeat
    one: its `id` tells. May be a coroutine function.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpResponse:
    """What a server answered; `body` holds no more than the limit that was asked for."""

    status: int
    headers: Mapping[str, str]
    """Names match in any case."""
    body: bytes
    truncated: bool


class HttpClient(Protocol):
    """The only way to the network: guarded, bounded, without redirects or cookies."""

    def check_url(self, url: str) -> None:
        """Return where `url` may be requested, as far as that can be told without the network.

        Raises `Misconfigured`, which says what is wrong with it.
        """
        ...

    async def vet_url(self, url: str) -> None:
        """Return where `url` may be requested, also by what its name leads to at this moment.

        Raises `Misconfigured`, which says what is wrong with it. A name that leads nowhere yet
        passes.
        """
        ...

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
        timeout: timedelta = timedelta(seconds=20),
        limit: int = 16_384,
    ) -> HttpResponse:
        """Return the answer, its body cut at `limit` bytes.

        Raises `Misconfigured` where the address is one that may not be reached, and `TryLater`
        where the far side could not be reached or did not answer in time.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """What a provider or channel is handed; it needs nothing global."""

    name: str
    """The name under [providers.<name>] or [destinations.<name>]."""
    http: HttpClient
    clock: Clock
    log: FilteringBoundLogger
    public_url: str = ""
    """Where others reach this Tocsin, without a slash at the end."""


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

    permissions: ClassVar[tuple[str, ...]] = ()
    """What the credentials must be allowed to do at the SIEM, in its own words."""

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
        where there is one: a tuple of durations, in order.
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


class Channel(ABC):
    """A way to tell someone; one is made for each [destinations.<name>]."""

    class Settings(PluginSettings):
        """What every destination can be told; derive yours from it."""

        plugin: str = Field(description="The channel's kind: the name of an enabled plugin.")
        events: tuple[EventType, ...] = Field(
            default=tuple(EventType),
            min_length=1,
            description="Which events go there; all four by default.",
        )
        min_severity: Severity = Field(
            default=Severity.MEDIUM, description="Leave out incident alerts below this severity."
        )
        providers: tuple[str, ...] = Field(
            default=(),
            description="Only incident alerts of these providers; of all, if none is named.",
        )
        when: ConditionText | None = Field(
            default=None,
            description="Only events of which this is true: a Jinja2 expression over "
            "`event_type`, `data`, `subject` and `context`, such as "
            "`data.severity == 'Critical' or 'vpn' in data.title`.",
        )
        template: str = Field(
            default="envelope", description="The receiver whose templates render the body."
        )
        timeout: Duration = Field(
            default=timedelta(seconds=20), description="How long one attempt may take; 60s at most."
        )
        concurrency: int = Field(
            default=8, ge=1, le=256, description="How many deliveries may be under way at once."
        )
        rate_limit: int | None = Field(
            default=None,
            ge=1,
            le=1_000_000,
            description="How many attempts a minute at most, over all nodes; no limit by default.",
        )
        ordered: bool = Field(
            default=False,
            description="Deliver what concerns one incident, session or schedule in its order, "
            "one at a time.",
        )
        retry_schedule: tuple[Duration, ...] = Field(
            default=tuple(
                timedelta(seconds=seconds)
                for seconds in (5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400)
            ),
            max_length=50,
            description="The wait before each retry; when it is used up, the delivery is dead.",
        )
        pause_after: Duration = Field(
            default=timedelta(minutes=5),
            description="Pause the destination when nothing has succeeded for so long, and",
        )
        pause_after_failures: int = Field(
            default=10,
            ge=1,
            description="so many attempts in a row have failed. What waits is parked meanwhile.",
        )
        probe_interval: Duration = Field(
            default=timedelta(minutes=1),
            gt=timedelta(0),
            description="How often one delivery is tried while the destination is paused; when "
            "one succeeds, the pause is over.",
        )
        allow_networks: tuple[Network, ...] = Field(
            default=(),
            description="Private networks (CIDR) that this destination may reach. Over HTTP only "
            "networks inside `TOCSIN_ALLOW_NETWORKS`.",
        )
        ca_file: LocalPath | None = Field(
            default=None,
            description="Certificates (PEM) of authorities to trust instead of the system's.",
        )
        client_certificate: LocalPath | None = Field(
            default=None, description="A certificate (PEM) to show to the receiver."
        )
        client_key: LocalPath | None = Field(
            default=None, description="Its private key, if it is not in the same file."
        )
        proxy: Annotated[str, FileOnly] | None = Field(
            default=None,
            description="An HTTP proxy to go through, which then decides what is reached.",
        )

        @field_validator("min_severity", mode="before")
        @classmethod
        def _any_case(cls, value: object) -> object:
            return Severity.parse(value) if isinstance(value, str) else value

        @field_validator("timeout")
        @classmethod
        def _shorter_than_a_lease(cls, value: timedelta) -> timedelta:
            if not timedelta(0) < value <= timedelta(seconds=60):
                raise ValueError("give a timeout of more than 0s and at most 60s")
            return value

    ordered: ClassVar[bool] = False
    """Whether what concerns one subject must always be delivered in order, one at a time."""

    def __init__(self, settings: Any, tools: Tools) -> None:
        """Keep what is needed; do no I/O. `settings` is an instance of this class's `Settings`."""
        self.settings = settings
        self.tools = tools

    async def start(self) -> None:
        """Get ready, once. Raising leaves this destination out, with the reason."""

    @abstractmethod
    async def check(self) -> Health:
        """Return whether the receiver can be reached, without delivering anything."""

    @abstractmethod
    async def deliver(self, delivery: Delivery) -> Receipt:
        """Deliver, and return what the receiver answered.

        Raises `TryLater` for what passes by itself, `Refused` for what does not, and
        `Misconfigured` for what waits until someone has mended the configuration. Anything else
        that is raised is taken for a bug of the channel, shown to the operator and tried again.
        """
