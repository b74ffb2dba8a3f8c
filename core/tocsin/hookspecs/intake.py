"""Base class of intakes, which accept pushes while the database is not available."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from pydantic import Field
from typing_extensions import TypeVar

from tocsin.errors import TryLater
from tocsin.fields import PluginSettings
from tocsin.hookspecs.configurable import Configurable
from tocsin.model import Health

S = TypeVar("S", bound="Intake.Settings", default=Any)


@dataclass(frozen=True, slots=True)
class IntakePosition:
    """A place in the stream of accepted pushes."""

    stream: str
    """The name of the stream, unlike that of any stream before it.

    A stream that was lost and created again has a name that sorts after the earlier one.
    """
    sequence: int
    """The number of the last push before this place; 0 at the start of the stream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakePush:
    """A push that is authenticated and was parsed once, before it is accepted."""

    provider: str
    key: str
    """Identifies the push among those to the provider: pushes with one key are the same push."""
    received_at: datetime
    body: bytes


@dataclass(frozen=True, slots=True)
class QueuedPush:
    """An accepted push, as the intake returns it."""

    sequence: int
    received_at: datetime
    body: bytes


@dataclass(frozen=True, slots=True)
class IntakePage:
    """Accepted pushes of one provider, in their order."""

    start: IntakePosition
    """The place from which on nothing is missing; later than the requested one if the intake no
    longer has what was between them.
    """
    pushes: Sequence[QueuedPush]
    end: IntakePosition
    """The place from which to continue."""


class Intake(Configurable[S], ABC):
    """Base class of intakes, which accept pushes while the database is not available.

    One instance serves [intake]. An accepted push stays in the intake until long after it was
    stored, because a restored backup of the database continues from its own position.

    All methods run in the event loop, in which the whole node works: never block it.
    """

    class Settings(PluginSettings):
        """Settings of every intake; derive yours from it."""

        plugin: str = Field(description="Name of the enabled plugin that provides the intake.")

    max_bytes: ClassVar[int] = 2**20
    """The size of the largest body that it accepts; larger ones go to the database."""

    @property
    @abstractmethod
    def is_available(self) -> bool:
        """Whether `publish` is expected to succeed now."""

    async def start(self) -> None:
        """Prepare; called once. Do not wait for servers: a node starts without them."""

    async def close(self) -> None:
        """Close its connections."""

    @abstractmethod
    async def check(self) -> Health:
        """Return whether accepted pushes are safe; every way to lose them is a problem.

        Raises `TryLater` if the servers do not respond.
        """

    @abstractmethod
    async def publish(self, push: IntakePush) -> IntakePosition:
        """Accept a push and return the place after it, as soon as it is safe; within two seconds.

        A push with the key of an earlier one that is still remembered returns that one's place.
        Raises `ConflictError` if their bodies differ, and `TryLater` if the push was not accepted,
        or if that is unknown.
        """

    @abstractmethod
    async def fetch(self, provider: str, position: IntakePosition | None, limit: int) -> IntakePage:
        """Return the pushes to a provider that follow a position, at most `limit`.

        Without a position, from the start. Waits a few seconds if there are none yet. The same
        position always returns the same pushes. One node at a time fetches those of a provider.
        Raises `TryLater`.
        """

    @abstractmethod
    async def acknowledge(self, provider: str, position: IntakePosition) -> None:
        """Note that the pushes to a provider before this position are stored.

        This serves statistics; what counts is the position in the database. Raises `TryLater`.
        """


class NoIntake(Intake):
    """Intake that accepts nothing, so that every push is stored in the database at once."""

    max_bytes = -1

    def __init__(self) -> None:
        """Need neither settings nor tools."""

    @property
    def is_available(self) -> bool:
        """False."""
        return False

    async def check(self) -> Health:
        """Return that there is nothing to check."""
        return Health(detail="no intake")

    async def publish(self, push: IntakePush) -> IntakePosition:  # noqa: ARG002 - the base's
        """Raise TryLater."""
        raise TryLater("no intake is configured")

    async def fetch(
        self,
        provider: str,  # noqa: ARG002 - the base's
        position: IntakePosition | None,  # noqa: ARG002
        limit: int,  # noqa: ARG002
    ) -> IntakePage:
        """Raise TryLater."""
        raise TryLater("no intake is configured")

    async def acknowledge(self, provider: str, position: IntakePosition) -> None:
        """Do nothing."""
