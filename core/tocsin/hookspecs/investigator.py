"""Base class for investigators, and the query client that they use."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Protocol

from pydantic import Field
from typing_extensions import TypeVar

from tocsin.fields import PluginSettings
from tocsin.hookspecs.configurable import Configurable
from tocsin.model import Inquiry, Phase, QueryResult, Question, Report

T = TypeVar("T")


class QueryClient(Protocol):
    """Interface for questions and conclusions, which Tocsin records as steps in a session's ledger.

    If a node was killed or a run is being replayed, the ledger already contains some steps. When a
    call repeats one of these steps, it returns the recorded result without querying a source.
    """

    @property
    def elapsed(self) -> timedelta:
        """The time from the start of the run to its last step, according to the ledger."""
        ...

    def enter(self, phase: Phase) -> None:
        """Start a phase, to which all steps belong until the next call."""
        ...

    async def ask(self, question: Question[T]) -> QueryResult[T]:
        """Return a question's result, which contains the reason if there is no answer."""
        ...

    async def ask_all(self, questions: Sequence[Question[T]]) -> list[QueryResult[T]]:
        """Ask several questions concurrently and return their results in order."""
        ...

    async def conclude(self, text: str, evidence: Sequence[str]) -> str:
        """Record a conclusion with its evidence and return its step, which you can cite."""
        ...


S = TypeVar("S", bound="Investigator.Settings", default=Any)


class Investigator(Configurable[S], ABC):
    """Base class for investigators, which ask questions only through the query client.

    The same inquiry and the same results must lead to the same report. An investigator must
    therefore not use a clock, files or random numbers, and must not keep state between runs.

    All methods run in the node's event loop and must not block it. Use `await`, and use
    `asyncio.to_thread` for calls that block or compute for more than a few milliseconds.
    """

    class Settings(PluginSettings):
        """Settings shared by all investigators; derive your settings from this class."""

        plugin: str = Field(
            default="investigator",
            description="The enabled plugin that this investigator uses.",
        )
        at_once: int = Field(
            default=4,
            ge=1,
            le=100,
            description="How many sessions can run on a node at the same time.",
        )

    async def start(self) -> None:
        """Prepare the investigator. Tocsin calls this method once.

        If `start` raises an error or takes more than a minute, Tocsin runs without an investigator.
        """

    @abstractmethod
    async def investigate(self, inquiry: Inquiry, client: QueryClient) -> Report:
        """Return the report on an inquiry.

        Raises `InvestigationFailed` if a report is impossible, for example because an incident in
        the query does not exist, or because every required provider is unavailable.
        """
