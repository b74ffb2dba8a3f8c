"""Test harness for providers of HTTP APIs."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, ClassVar, Self

from aiohttp import web

from tocsin.errors import PluginFailure, TryLater
from tocsin.model import Json
from tocsin.testing.conformance.harness import Conformance, Harness
from tocsin.testing.conformance.record_shapes import unchanged
from tocsin.testing.conformance.rules import RuleViolation, describe_error, does_not_apply
from tocsin.testing.faults import OF_PAGES, Fault
from tocsin.testing.siem import Case
from tocsin.testing.simulator import Simulator
from tocsin.testing.vendor_api import ErrorResponse

FIRST_FETCH = timedelta(hours=2)
_MINUTE = timedelta(minutes=1)
_MOST_TRIES = 20


def _keep_answer(content: Json) -> Json:
    return content


class HttpConformance(Conformance):
    """Base of the rules for providers of HTTP APIs."""

    simulator: ClassVar[type[Simulator]]

    @abstractmethod
    def settings(self, url: str) -> Mapping[str, Any]:
        """Return the settings with which the provider reads the simulator at `url`.

        Return secrets as plain text and leave out settings that have a default.
        """

    def wrong_settings(self, url: str) -> Mapping[str, Any]:
        """Return settings with credentials that the simulator does not accept.

        By default, replaces every secret. Return an empty mapping if there are no credentials.
        """
        given = self.settings(url)
        secret = self.provider.Settings.secret_fields() & given.keys()
        return {**given, **dict.fromkeys(secret, "not-the-right-one")} if secret else {}

    def harness(self, *, most_per_page: int | None = None) -> HttpHarness:
        """Return a harness for the provider; `most_per_page` limits the simulator's pages."""
        return HttpHarness(self, most_per_page)


class HttpHarness(Harness):
    """One test run against a simulator."""

    def __init__(self, suite: HttpConformance, most_per_page: int | None) -> None:
        super().__init__(suite)
        self._suite = suite
        self.clock.advance(microseconds=123_456)  # vendors' times are rarely whole seconds
        self.alter_answer: Callable[[Json], Json] = _keep_answer
        """A change that is applied to every response."""
        self.refused: dict[str, int] = {}
        """Statuses of incidents that are refused, by ID."""
        self.used: set[str] = set()
        """The building blocks that the simulator's handlers used: `slice` (or `page`), `show` and
        `json`.
        """
        self._limits_pages = most_per_page is not None
        self.simulator = _is_shown_by(self, suite.simulator, most_per_page)(self.siem)

    async def __aenter__(self) -> Self:
        await self.simulator.__aenter__()
        return await super().__aenter__()

    async def __aexit__(self, *raised: object) -> None:
        await super().__aexit__()
        await self.simulator.__aexit__()
        match raised, self.simulator.mistakes:
            case [_, Exception() as error, _], [mistake, *_]:
                seen = str(error) if isinstance(error, RuleViolation) else describe_error(error)
                detail = f"a handler of the simulator raised {describe_error(mistake)}"
                raise RuleViolation(f"{seen}; {detail}") from mistake
            case [_, None | RuleViolation() as error, _], _ if never_met := self._never_met():
                raise RuleViolation(never_met if error is None else f"{error}; {never_met}")

    def settings(self) -> Mapping[str, Any]:
        """Return the provider's settings, with a short first fetch for speed."""
        return self._brief() | dict(self._suite.settings(self.simulator.url))

    def wrong_settings(self) -> Mapping[str, Any]:
        """Return settings with wrong credentials; skip the rule if there are none."""
        wrong = self._suite.wrong_settings(self.simulator.url)
        return wrong or does_not_apply("the provider has no credentials")

    def render(self, case: Case) -> dict[str, Any]:
        """Return the record of a case, as the vendor writes it."""
        return self._suite.simulator.render(self.simulator, case)

    async def arrive(self) -> None:
        """Read once everything has settled."""
        self.settle()
        await self.reader.read()

    async def persist(self) -> None:
        """Read repeatedly, as the core does, until a read succeeds."""
        self.settle()
        for _ in range(_MOST_TRIES):
            error = await self.reader.failure()
            if error is None:
                return
            self.wait_out(error)
        raise RuleViolation(f"{_MOST_TRIES} reads failed, the last with {error!r}")

    def _never_met(self) -> str | None:
        """Return what a rule prepared and the simulator's handlers bypass, None for nothing."""
        simulator, arrived = self.simulator, self.store.incidents or self.store.rejected
        if not arrived:  # another rule fails because of that
            return None
        faults = [fault for fault in simulator.faults_left if fault in OF_PAGES]
        if (faults or self._limits_pages or self.siem.poisoned) and "slice" not in self.used:
            what = f"the fault `{faults[0]}`" if faults else "the page limit"
            return f"{what} never took effect: list incidents with `page` or `slice`"
        alters = self.alter is not unchanged or self.altered or self.siem.unreadable()
        if alters and "show" not in self.used:
            return "the changed record never reached the provider: render it with `show`"
        if self.alter_answer is not _keep_answer and "json" not in self.used:
            return "the changed response never reached the provider: respond with `self.json`"
        return None

    def limit_pages(self, most: int) -> None:
        """Set the SIEM's page limit."""
        type(self.simulator).most_per_page = most

    async def hang_up(self) -> None:
        """Make the SIEM unreachable until `simulator.listen`."""
        await self.http.close()  # server shutdown waits for idle connections
        await self.simulator.hang_up()

    def settle(self) -> None:
        """Advance the clock until all changes so far are read."""
        delay: timedelta = getattr(self.provider.settings, "settle_delay", timedelta(0))
        self.clock.advance(seconds=(delay + _MINUTE).total_seconds())

    def wait_out(self, error: Exception) -> None:
        """Advance the clock by as much as the core waits after this failure; raise other errors."""
        if not isinstance(error, PluginFailure):
            raise error
        after = error.after if isinstance(error, TryLater) else None
        self.clock.advance(seconds=(after or _MINUTE).total_seconds())

    def setting(self, name: str) -> timedelta:
        """Return a duration that the operator sets; skip the rule if there is none."""
        value = getattr(self.provider.settings, name, None)
        return value if isinstance(value, timedelta) else does_not_apply(f"no setting `{name}`")

    def _brief(self) -> dict[str, Any]:
        fields = self._suite.provider.Settings.model_fields
        return {"first_fetch": FIRST_FETCH} if "first_fetch" in fields else {}


def _is_shown_by(
    harness: HttpHarness, kind: type[Simulator], most_per_page: int | None
) -> type[Simulator]:
    """Return the simulator class with records altered by the harness, in any JSON."""

    def to_json(content: Any, status: int = 200) -> web.Response:
        harness.used.add("json")
        body = json.dumps(harness.alter_answer(content)).encode()  # can write a lone surrogate
        return web.Response(body=body, status=status, content_type="application/json")

    def get(simulator: Simulator, identifier: str) -> Case:
        if identifier in harness.refused:
            raise ErrorResponse(harness.refused[identifier], "this incident is restricted")
        return kind.get(simulator, identifier)

    def show(_: Simulator, case: Case) -> dict[str, Any]:
        harness.used.add("show")
        return harness.show(case)

    def takes(simulator: Simulator, fault: Fault) -> bool:
        harness.used.add("slice")  # each page asks for its faults
        return kind._takes(simulator, fault)  # noqa: SLF001 - of the same package

    members: dict[str, Any] = {
        "get": get,
        "show": show,
        "json": staticmethod(to_json),
        "_takes": takes,
    }
    if most_per_page is not None:
        members["most_per_page"] = most_per_page
    return type(kind.__name__, (kind,), members)
