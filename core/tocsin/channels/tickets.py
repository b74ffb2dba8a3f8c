"""The seam between the channel `ticketing` and the trackers that it knows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from tocsin.channels.cases import CaseChannel
from tocsin.conditions import ExpressionText
from tocsin.hookspecs import Tools
from tocsin.model import EventType, Health, Idempotency, Json, Severity
from tocsin.providers import ApiResponse

Request = Callable[..., Awaitable[ApiResponse]]


class TicketSettings(CaseChannel.Settings):
    """What every destination that is a tracker can be told."""

    tracker: str = Field(description="Which kind of tracker it is, such as `jira-cloud`.")
    template: str = Field(
        default="", description="The receiver whose templates render the ticket; the tracker's own."
    )
    username: str | None = Field(
        default=None, description="Who signs in, where the tracker wants a name beside the secret."
    )
    secret: SecretStr = Field(description="The API token, personal access token or password.")
    project: str = Field(
        min_length=1,
        max_length=300,
        description="Where tickets belong: a project, a queue, a repository or a table.",
    )
    issue_type: str | None = Field(default=None, description="What kind of ticket is made.")
    labels: tuple[str, ...] = Field(
        default=(), max_length=20, description="Labels that every ticket has."
    )
    assignee: str | None = Field(default=None, description="Who is to work on new tickets.")
    priorities: Mapping[Severity, str] = Field(
        default_factory=dict,
        description="What the tracker calls our severities, where its contract has it otherwise.",
    )
    fields: Mapping[str, ExpressionText] = Field(
        default_factory=dict,
        max_length=50,
        description="More fields of a ticket: an expression over the event for each, as in `when`.",
    )
    comment_on: tuple[EventType, ...] = Field(
        default=(
            EventType.INVESTIGATION_COMPLETED,
            EventType.INVESTIGATION_FAILED,
            EventType.SCHEDULE_DISABLED,
        ),
        description="Which events comment on a ticket that is there already.",
    )
    attach_report: bool = Field(
        default=True,
        description="Put the whole report into the comment; otherwise its summary and the link.",
    )
    options: Mapping[str, str | bool | int | tuple[str, ...]] = Field(
        default_factory=dict, description="What only this kind of tracker can be told."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """A ticket as it is to be made or brought up to date."""

    key: str
    """What names it at the tracker, for it to be found again; no other ticket has it."""
    body: Mapping[str, Any]
    """What the templates render: the fields of a new ticket, in the tracker's words."""
    priority: str | None
    """The tracker's word; None where neither contract nor settings have one."""
    fields: Mapping[str, Json] = field(default_factory=dict)
    """What the operator wants to stand in more fields."""


class Tracker(ABC):
    """How one kind of tracker is asked.

    `find` comes before `create`, and `comments` before `comment`, so that nothing is there twice.
    """

    class Options(BaseModel):
        """What only this kind of tracker can be told."""

        model_config = ConfigDict(extra="forbid", frozen=True)

    receiver: ClassVar[str]
    """Whose templates render the ticket."""
    part: ClassVar[str] = "body"
    """The part of them that does."""
    reserved: ClassVar[frozenset[str]] = frozenset()
    """What the operator's `fields` may not name, in small letters: what Tocsin sets by itself."""
    idempotency: ClassVar[Idempotency]
    settling: ClassVar[timedelta | None] = None
    """How long a search may not find what was just made; None where the tracker has a key."""

    def __init__(
        self, settings: TicketSettings, options: Any, tools: Tools, request: Request
    ) -> None:
        """Keep what is needed; do no I/O. `request` is that of the channel."""
        self.settings = settings
        self.options = options
        self.tools = tools
        self.request = request

    async def ask(self, method: str, path: str, **options: Any) -> Json:
        """Return the body of what the tracker answers; raises what `Api.request` raises."""
        return (await self.request(method, path, **options)).json

    @abstractmethod
    def authorization(self) -> Mapping[str, str]:
        """Return the headers that say who asks."""

    @abstractmethod
    async def check(self) -> Health:
        """Return what is missing there: project, type, fields without a value, permissions."""

    @abstractmethod
    async def find(self, key: str) -> str | None:
        """Return the id of the ticket that has this key, None where there is none."""

    @abstractmethod
    async def create(self, ticket: Ticket) -> str:
        """Make a ticket that has its key, and return its id."""

    @abstractmethod
    async def comments(self, identifier: str) -> Sequence[str]:
        """Return the texts of a ticket's comments, the latest ones at least."""

    @abstractmethod
    async def comment(self, identifier: str, text: str) -> None:
        """Comment on a ticket."""

    @abstractmethod
    async def update(self, identifier: str, ticket: Ticket) -> None:
        """Bring priority and the operator's fields up to date."""

    @abstractmethod
    async def is_open(self, identifier: str) -> bool | None:
        """Return whether a ticket is open, None where there is none of this id any more."""

    @abstractmethod
    async def close(self, identifier: str, reason: str) -> None:
        """Close a ticket that is open."""

    @abstractmethod
    def link(self, identifier: str) -> str:
        """Return where a person can look at a ticket."""
