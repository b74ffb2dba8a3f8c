"""Interface between the channel `ticketing` and its trackers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from tocsin.channels.remote_objects import ObjectChannel
from tocsin.channels.status_settings import Resolutions, StatusInterval, WebhookSecret
from tocsin.conditions import Expression, ExpressionText, make_allowance
from tocsin.hookspecs import PushRequest, Tools
from tocsin.model import (
    Event,
    EventType,
    Health,
    Idempotency,
    IncidentDisposition,
    Json,
    RemoteStatus,
    Severity,
)
from tocsin.providers import ApiResponse

Request = Callable[..., Awaitable[ApiResponse]]
_Value = str | bool | int | tuple[str, ...]
_Option = _Value | Mapping[str, _Value | Mapping[str, _Value]]
"""An option of a tracker, as written; the tracker's `Options` check it."""


class TicketSettings(ObjectChannel.Settings):
    """Settings shared by all destinations that deliver to a tracker."""

    tracker: str = Field(description="Kind of tracker, such as `jira-cloud`.")
    template: str = Field(
        default="",
        description="The receiver whose templates Tocsin uses for the ticket. By default, Tocsin "
        "uses the tracker's templates.",
    )
    username: str | None = Field(
        default=None,
        description="User name, if the tracker requires one in addition to the secret.",
    )
    secret: SecretStr = Field(description="API token, personal access token or password.")
    project: str = Field(
        min_length=1,
        max_length=300,
        description="Where to create tickets: a project, queue, repository or table.",
    )
    issue_type: str | None = Field(default=None, description="Type of new tickets.")
    labels: tuple[str, ...] = Field(
        default=(), max_length=20, description="Labels to add to every ticket."
    )
    assignee: str | None = Field(default=None, description="Assignee of new tickets.")
    priorities: Mapping[Severity, str] = Field(
        default_factory=dict,
        description="Tracker priority for each severity. Each entry overrides the priority in the "
        "contract of the tracker's templates.",
    )
    fields: Mapping[str, ExpressionText] = Field(
        default_factory=dict,
        max_length=50,
        description="Additional ticket fields. Each value is an expression that Tocsin evaluates "
        "for the event, as in `when`.",
    )
    comment_on: tuple[EventType, ...] = Field(
        default=(
            EventType.INVESTIGATION_COMPLETED,
            EventType.INVESTIGATION_FAILED,
            EventType.SCHEDULE_DISABLED,
        ),
        description="Event types that add a comment to an existing ticket.",
    )
    attach_report: bool = Field(
        default=True,
        description="Whether Tocsin adds the full report as a comment instead of a summary and a "
        "link.",
    )
    status_interval: StatusInterval = None
    resolutions: Resolutions
    webhook_secret: WebhookSecret
    options: Mapping[str, _Option] = Field(
        default_factory=dict, description="Settings that only this kind of tracker has."
    )

    def evaluate_fields(self, event: Event) -> tuple[dict[str, Json], dict[str, str]]:
        """Return the values of `fields` for an event, and the reason for each missing value.

        The expressions of all fields share the time and memory limits of a single expression.
        """
        values: dict[str, Json] = {}
        reasons: dict[str, str] = {}
        variables, allowance = event.variables(), make_allowance()
        for name, text in self.fields.items():
            try:
                values[name] = Expression(text).value(variables, allowance)
            except Exception as error:  # noqa: BLE001 - operators' expressions may raise anything
                reasons[name] = str(error)
        return values, reasons


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """A ticket to create or update."""

    key: str
    """A unique key, by which Tocsin finds the ticket in the tracker."""
    body: Mapping[str, Any]
    """The rendered fields of a new ticket, in the tracker's format."""
    priority: str | None
    """The tracker's priority; None if neither the contract nor the settings define one."""
    fields: Mapping[str, Json] = field(default_factory=dict)
    """Additional fields that the operator configured."""


class Tracker(ABC):
    """Client for one kind of tracker.

    To prevent duplicates, Tocsin calls `find` before `create`, and `list_notes` before `add_note`.
    """

    class Options(BaseModel):
        """Settings that only this kind of tracker has."""

        model_config = ConfigDict(extra="forbid", frozen=True)

    receiver: ClassVar[str]
    """The receiver whose templates render the ticket."""
    part: ClassVar[str] = "body"
    """The template part that renders the ticket."""
    reserved: ClassVar[frozenset[str]] = frozenset()
    """The lowercase names of fields that Tocsin sets itself; `fields` must not contain them."""
    idempotency: ClassVar[Idempotency]
    settling: ClassVar[timedelta | None] = None
    """How long a search can miss a new ticket; None if the tracker supports unique keys."""

    status_batch: ClassVar[int] = 0
    """How many tickets one call of `read_statuses` can read; 0 if you do not implement it."""
    accepts_webhooks: ClassVar[bool] = False
    """Whether the class implements `parse_webhook`."""

    def __init__(
        self, settings: TicketSettings, options: Any, tools: Tools, request: Request
    ) -> None:
        """Store the arguments; do not perform I/O. `request` is the channel's request function."""
        self.settings = settings
        self.options = options
        self.tools = tools
        self.request = request

    async def ask(self, method: str, path: str, **options: Any) -> Json:
        """Send a request and return the JSON body of the response.

        Raises the same errors as `Api.request`.
        """
        return (await self.request(method, path, **options)).json

    @abstractmethod
    def authorization(self) -> Mapping[str, str]:
        """Return the headers that authenticate requests."""

    @abstractmethod
    async def check(self) -> Health:
        """Report whether the project, the type, a required field or a permission is missing."""

    @abstractmethod
    async def find(self, key: str) -> str | None:
        """Return the ID of the ticket with this key, or None if there is none."""

    @abstractmethod
    async def create(self, ticket: Ticket) -> str:
        """Create a ticket that contains `ticket.key`, and return the tracker's ID."""

    @abstractmethod
    async def list_notes(self, identifier: str) -> Sequence[str]:
        """Return the texts of a ticket's comments, at least the latest ones."""

    @abstractmethod
    async def add_note(self, identifier: str, text: str) -> None:
        """Comment on a ticket."""

    @abstractmethod
    async def update(self, identifier: str, ticket: Ticket) -> None:
        """Update a ticket's priority and the fields that the operator configured."""

    @abstractmethod
    async def is_open(self, identifier: str) -> bool | None:
        """Return whether a ticket is open; None if the ID is unknown."""

    @abstractmethod
    async def close(self, identifier: str, reason: str) -> None:
        """Close an open ticket."""

    async def close_as(
        self,
        identifier: str,
        reason: str,
        disposition: IncidentDisposition | None,  # noqa: ARG002 - for trackers with resolutions
    ) -> None:
        """Close an open ticket and set the resolution for a disposition.

        The default implementation calls `close`. Override this method if operators map dispositions
        to the tracker's resolutions.
        """
        await self.close(identifier, reason)

    async def explain_closed(  # noqa: B027 - most trackers give the reason in the same request
        self, identifier: str, reason: str
    ) -> None:
        """Add the reason as a comment to a ticket that an interrupted attempt closed.

        Implement this method if `close` adds the comment in a separate request after it closes the
        ticket.
        """

    async def read_statuses(self, identifiers: Sequence[str]) -> Mapping[str, RemoteStatus]:
        """Return the statuses of tickets by ID, without tickets that no longer exist.

        If you implement this method, set `status_batch`.
        """
        raise NotImplementedError

    async def list_closed_statuses(self) -> Sequence[str]:
        """Return the names of the statuses that closed tickets can have in the tracker.

        Implement this method together with `read_statuses`.
        """
        raise NotImplementedError

    @classmethod
    def parse_webhook(
        cls,
        settings: Any,
        request: PushRequest,
        now: datetime,
    ) -> Sequence[str]:
        """Return the IDs of the tickets that a webhook from the tracker names.

        Tocsin then asks the tracker for the statuses of these tickets; it does not use anything
        else from the body. Before you parse the body, check that the sender knows
        `settings.webhook_secret`; otherwise, raise `CredentialsRefused`. Do not perform I/O. If you
        implement this method, set `accepts_webhooks`.
        """
        raise NotImplementedError

    @abstractmethod
    def link(self, identifier: str) -> str:
        """Return the URL at which people open the ticket."""
