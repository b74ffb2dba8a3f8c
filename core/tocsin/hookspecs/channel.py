"""Base class for channels, which deliver events."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Annotated, Any, ClassVar

from pydantic import Field, field_validator
from typing_extensions import TypeVar

from tocsin.conditions import ConditionText
from tocsin.errors import Refused
from tocsin.fields import Duration, FileOnly, LocalPath, Network, PluginSettings
from tocsin.hookspecs.configurable import Configurable
from tocsin.hookspecs.message_actions import MessageAction
from tocsin.hookspecs.provider import PushRequest
from tocsin.model import Delivery, EventType, Health, Receipt, Severity
from tocsin.redaction import list_secret_values

S = TypeVar("S", bound="Channel.Settings", default=Any)


class Channel(Configurable[S], ABC):
    """Base class for channels. Tocsin creates one instance for each table [destinations.<name>].

    All methods run in the node's event loop and must not block it. Use `await`, and use
    `asyncio.to_thread` for calls that block or compute for more than a few milliseconds.
    """

    class Settings(PluginSettings):
        """Settings shared by all destinations; derive your settings from this class."""

        plugin: str = Field(description="The enabled plugin that this destination uses.")
        events: tuple[EventType, ...] = Field(
            default=tuple(EventType),
            min_length=1,
            description="Types of events to deliver. By default, Tocsin delivers all four types.",
        )
        min_severity: Severity = Field(
            default=Severity.MEDIUM,
            description="Deliver alerts only about incidents with at least this severity.",
        )
        providers: tuple[str, ...] = Field(
            default=(),
            description="Deliver alerts only about incidents from these providers. By default, "
            "Tocsin delivers alerts from all providers.",
        )
        when: ConditionText | None = Field(
            default=None,
            description="Deliver only events for which this Jinja2 expression is true, such as "
            "`data.severity == 'Critical' or 'vpn' in data.title`. The expression can "
            "use `event_type`, `data`, `subject` and `context`.",
        )
        template: str = Field(
            default="envelope",
            description="The receiver whose templates Tocsin uses for the request body.",
        )
        timeout: Duration = Field(
            default=timedelta(seconds=20),
            description="Time limit for each delivery attempt, at most 60s.",
        )
        concurrency: int = Field(
            default=8,
            ge=1,
            le=256,
            description="Maximum number of concurrent deliveries per node.",
        )
        rate_limit: int | None = Field(
            default=None,
            ge=1,
            le=1_000_000,
            description="Maximum number of attempts per minute, across all nodes. By default, "
            "there is no limit.",
        )
        ordered: bool = Field(
            default=False,
            description="Whether to deliver the events about each incident, session or schedule in "
            "order, one at a time.",
        )
        retry_schedule: tuple[Duration, ...] = Field(
            default=tuple(
                timedelta(seconds=seconds)
                for seconds in (5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400)
            ),
            max_length=50,
            description="How long to wait before each retry. If the last retry fails, the "
            "delivery is dead.",
        )
        pause_after: Duration = Field(
            default=timedelta(minutes=5),
            description="How long attempts must keep failing before Tocsin pauses the destination "
            "and puts its waiting deliveries on hold.",
        )
        pause_after_failures: int = Field(
            default=10,
            ge=1,
            description="How many attempts in a row must fail before Tocsin pauses the "
            "destination. The time in `pause_after` must also have passed.",
        )
        probe_interval: Duration = Field(
            default=timedelta(minutes=1),
            gt=timedelta(0),
            description="How often to send a probe delivery while the destination is paused. "
            "When a probe succeeds, deliveries resume.",
        )
        allow_networks: tuple[Network, ...] = Field(
            default=(),
            description="Private networks (CIDR) that this destination can reach. Over the API, "
            "you can add only networks that lie within the networks in `TOCSIN_ALLOW_NETWORKS`.",
        )
        ca_file: LocalPath | None = Field(
            default=None,
            description="File with CA certificates (PEM) to trust instead of the system's.",
        )
        client_certificate: LocalPath | None = Field(
            default=None, description="File with the client certificate (PEM)."
        )
        client_key: LocalPath | None = Field(
            default=None,
            description="File with the client certificate's private key, if the certificate file "
            "does not contain it.",
        )
        proxy: Annotated[str, FileOnly] | None = Field(
            default=None,
            description="URL of the HTTP proxy for all requests. The proxy then decides which "
            "hosts can be reached.",
        )

        @field_validator("min_severity", mode="before")
        @classmethod
        def _any_case(cls, value: object) -> object:
            return Severity.parse(value) if isinstance(value, str) else value

        @field_validator("timeout")
        @classmethod
        def _shorter_than_a_lease(cls, value: timedelta) -> timedelta:
            if not timedelta(0) < value <= timedelta(seconds=60):
                raise ValueError("use a timeout of more than 0s and at most 60s")
            return value

    ordered: ClassVar[bool] = False
    """Whether deliveries about the same subject must always be sent in order, one at a time."""

    parts: ClassVar[tuple[str, ...]] = ("body",)
    """The parts of each event that the channel renders with templates."""

    @property
    def tenant_key(self) -> str:
        """A key for the account or project in which the receiver stores objects.

        Tocsin stores this key with each remote ID. If the key changes, Tocsin no longer uses the
        earlier IDs, so it does not find the earlier objects.
        """
        return ""

    def list_secrets(self) -> Iterable[str]:
        """Return all of the destination's secrets; by default, the secrets in its settings.

        Tocsin removes these secrets from responses, reasons and errors before it stores, shows or
        logs them. Override this method to add values that are derived from secrets, such as the
        value of `Authorization`.
        """
        return list_secret_values(self.settings)

    @property
    def gathering(self) -> timedelta | None:
        """How long to collect deliveries for one message; None if deliveries do not wait.

        Tocsin divides each day into intervals of this length, starting at midnight UTC. Deliveries
        wait in the queue until the end of their interval. Tocsin then passes them to the channel
        concurrently, `concurrency` at a time. Retries follow their own schedule, but Tocsin
        collects them for up to a minute.
        """
        return None

    async def start(self) -> None:
        """Prepare the channel. Tocsin calls this method once.

        If `start` raises an error or takes more than a minute, Tocsin reports the destination as
        unavailable, with the reason.
        """

    @abstractmethod
    async def check(self) -> Health:
        """Return whether the receiver is reachable, without delivering anything."""

    @abstractmethod
    async def deliver(self, delivery: Delivery) -> Receipt:
        """Deliver an event and return the receiver's response.

        Raises `TryLater` for temporary failures, `Refused` for permanent failures, and
        `Misconfigured` for failures that an operator must fix in the configuration. Any other
        exception counts as a bug in the channel: Tocsin shows it to the operator and retries the
        delivery.
        """

    async def follow(self, delivery: Delivery) -> Receipt:  # noqa: ARG002 - for those that override
        """Update existing objects after a change to the subject for which they were created.

        Tocsin calls this method only for destinations with `follow_changes = true`. If you
        implement this method, declare the setting `follow_changes` with the default `False`, and
        set `ordered` to `True` in the class. `delivery.event.event_type` is a `ChangeType`.
        `delivery.render` renders the current state with the templates of
        `delivery.event.template_type`. If `delivery.remote_id` is None and `delivery.related` is
        empty, there is nothing to update, so just return a receipt. Tocsin can call this method
        again for the same change. Raises the same errors as `deliver`.
        """
        raise Refused("this channel cannot follow changes")

    @classmethod
    def parse_action(
        cls,
        settings: Any,
        request: PushRequest,
        now: datetime,
        *,
        public_url: str,
    ) -> MessageAction | None:
        """Return which button a person pressed in a message from this installation of Tocsin.

        Returns None if the request is not about a button. Before you parse the body, check that the
        receiver signed the request and that the request is recent; otherwise, raise
        `CredentialsRefused`. Use the incident number in the message only if the message proves that
        this installation put it there. `public_url` is the same as in `tools`. Do not perform I/O.
        """
        raise NotImplementedError

    async def reply(self, action: MessageAction, text: str) -> None:
        """Show a text only to the person who pressed a button.

        Implement this method together with `parse_action`. Raises the same errors as `deliver`.
        """
        raise NotImplementedError
