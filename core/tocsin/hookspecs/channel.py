"""Base class of channels, which deliver events."""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import timedelta
from typing import Annotated, Any, ClassVar

from pydantic import Field, field_validator

from tocsin.conditions import ConditionText
from tocsin.fields import Duration, FileOnly, LocalPath, Network, PluginSettings
from tocsin.hookspecs.tools import Tools
from tocsin.model import Delivery, EventType, Health, Receipt, Severity


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
            description="so many attempts in a row have failed. Its deliveries are then on hold.",
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

    parts: ClassVar[tuple[str, ...]] = ("body",)
    """What it renders of each event, for `tocsin check` to try."""

    @property
    def home(self) -> str:
        """Where the receiver keeps what it makes, in words that change when that is elsewhere.

        What was made elsewhere is not known any more, since its ids mean something else here.
        """
        return ""

    @property
    def gathering(self) -> timedelta | None:
        """How long deliveries wait for others, so that one message can tell of several; None: not.

        They wait in the queue until the end of a stretch of the clock of that length, counted from
        midnight (UTC), and are then handed over side by side, `concurrency` of them at a time.
        Retries go by their schedule, and wait for each other for a minute at most.
        """
        return None

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
