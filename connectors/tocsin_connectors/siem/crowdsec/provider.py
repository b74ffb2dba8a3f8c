"""CrowdSec provider."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from pydantic import Field, SecretStr

from tocsin import (
    Api,
    ApiResponse,
    ApiSettings,
    Broken,
    CredentialsRefused,
    Duration,
    Entity,
    Grant,
    Health,
    Incident,
    Listing,
    Misconfigured,
    Refused,
    SiemEvent,
    Tools,
    TryLater,
    Window,
    WindowedProvider,
)
from tocsin_connectors.siem.crowdsec.client import (
    ALERTS,
    CLOCK_TOLERANCE,
    ENTITY_KINDS,
    build_queries,
    build_time_filters,
    is_in_window,
    parse_alerts,
    parse_grant,
)
from tocsin_connectors.siem.crowdsec.contract import CONTRACTS
from tocsin_connectors.siem.crowdsec.events import find_decisions, find_lines
from tocsin_connectors.siem.crowdsec.go_time import format_duration
from tocsin_connectors.siem.crowdsec.mapping import (
    build_incident,
    is_blocklist,
    parse_creation_time,
    parse_entity,
    stabilize_decisions,
)
from tocsin_connectors.siem.crowdsec.pagination import MAX_GROWTH, CrowdSecCursor
from tocsin_connectors.siem.retirements import load_retirements

_NOT_FOUND = 404
_ATTEMPTS = 3


class CrowdSecSettings(ApiSettings, WindowedProvider.Settings):
    """Settings of a CrowdSec provider."""

    machine_id: str = Field(
        min_length=1,
        description="The name of the machine that Tocsin signs in as. Bouncers cannot read alerts.",
    )
    password: SecretStr = Field(description="The machine's password.")
    refresh_after: tuple[Duration, ...] = Field(
        default=(timedelta(hours=1), timedelta(hours=5), timedelta(hours=25)),
        max_length=10,
        description="The delays after which Tocsin reads a new incident again, to check whether "
        "its decisions have ended.",
    )


class CrowdSec(WindowedProvider[CrowdSecSettings]):
    """Reads the alerts of a CrowdSec Local API (LAPI)."""

    record_contracts = CONTRACTS
    retirements = load_retirements("crowdsec")
    event_kinds = ENTITY_KINDS
    permissions = ("a validated machine (cscli machines add); a bouncer API key is not sufficient",)

    def __init__(self, settings: Any, tools: Tools) -> None:
        """Store the dependencies. Performs no I/O."""
        super().__init__(settings, tools)
        self._api = Api(tools, settings, sign_in=self._sign_in)

    async def check(self) -> Health:
        """Check that alerts can be read. Raises what `Api.request` raises."""
        parse_alerts(await self._api.get(ALERTS, limit=1))
        return Health(detail=f"{self.settings.machine_id} can read alerts from {self.settings.url}")

    async def list_changes(
        self,
        stream: str,  # noqa: ARG002 - there is only one
        window: Window,
        token: Any,
        limit: int,
    ) -> Listing:
        """Return a page of the alerts created in the window, the newest first."""
        cursor = (
            CrowdSecCursor.first(window, limit) if token is None else CrowdSecCursor.decode(token)
        )
        alerts, server_time = await self._newest(cursor)
        following = cursor.following(
            [parse_creation_time(alert) for alert in alerts], window, limit
        )
        return Listing(
            records=[stabilize_decisions(alert) for alert in alerts if is_in_window(alert, window)],
            next_token=following and following.encode(),
            server_time=server_time,
        )

    def to_incident(self, record: Mapping[str, Any]) -> Incident | None:
        """Return the incident of an alert, or None for an update of a blocklist.

        Raises ValueError if the alert has no usable ID or creation time.
        """
        alert = dict(record)
        return None if is_blocklist(alert) else build_incident(alert)

    async def incident(self, external_id: str) -> Incident | None:
        """Return the current alert, or None if it was deleted or its ID was reused."""
        number = external_id.partition("@")[0]
        if not number.isdecimal():
            return None
        try:
            answer = await self._api.get(f"{ALERTS}/{number}")
        except Refused as error:
            if error.status == _NOT_FOUND:
                return None
            raise
        try:
            found = build_incident(stabilize_decisions(dict(answer.json)))
        except (TypeError, ValueError) as error:
            raise Broken(f"GET {ALERTS}/{number} did not return a valid alert: {error}") from None
        return found if found.external_id == external_id else None

    async def events(
        self, entity: Entity, window: Window, limit: int
    ) -> AsyncGenerator[SiemEvent, None]:
        """Yield counted log lines and decisions on an address or a user.

        If the limit is exceeded, the ones of the newest alerts are returned. Other kinds of entity
        cannot be searched for.
        """
        found: dict[str | None, SiemEvent] = {}
        asked = next(parse_entity(entity.kind, entity.value), entity)  # in canonical form
        for query in build_queries(asked):
            alerts, now = await self._find_alerts(query, window, limit)
            for alert in alerts:
                with suppress(ValueError):  # skip invalid alerts
                    lines, decisions = find_lines(alert, asked), find_decisions(alert, asked, now)
                    found.update((line.external_id, line) for line in (*lines, *decisions))
        events = [event for event in found.values() if event.occurred_at in window]
        for event in sorted(events, key=lambda event: event.occurred_at, reverse=True)[:limit]:
            yield event

    async def _find_alerts(
        self, query: Mapping[str, str], window: Window, limit: int
    ) -> tuple[Sequence[dict[str, Any]], datetime]:
        """Return alerts, newest first, and the server time."""

        def filters(now: datetime) -> Mapping[str, str]:
            return {**query, **build_time_filters(window, now)}

        size = MAX_GROWTH
        while True:
            alerts, server_time = await self._ask(filters, size)
            if len(alerts) < size or size >= limit:
                return [alert for alert in alerts if not is_blocklist(alert)], server_time
            size += MAX_GROWTH  # limited growth, see `pagination`

    async def _newest(self, cursor: CrowdSecCursor) -> tuple[Sequence[dict[str, Any]], datetime]:
        """Return the newest alerts created up to the end of the cursor, and the server time."""

        def filters(now: datetime) -> Mapping[str, str]:
            return {
                "created_before": format_duration(
                    max(now - cursor.until - CLOCK_TOLERANCE, timedelta(0))
                )
            }

        return await self._ask(filters, cursor.size)

    async def _ask(
        self, filters: Callable[[datetime], Mapping[str, str]], limit: int
    ) -> tuple[Sequence[dict[str, Any]], datetime]:
        """Return the newest alerts that match filters derived from the server time, and that time.

        Bounds are ages, which the server compares with its own clock. If its clock turns out to
        differ from the assumption, alerts are missing, and the request is repeated.
        """
        for _ in range(_ATTEMPTS):
            assumed = self.clock_skew
            now = self.tools.clock.now() + (assumed or timedelta(0))
            answer = await self._api.get(ALERTS, limit=limit, **filters(now))
            server_time, skew = self._learn_time(answer)
            if assumed is not None and abs(assumed - skew) <= CLOCK_TOLERANCE:
                return parse_alerts(answer), server_time
        raise TryLater("cannot determine the clock skew of the Local API")

    def _learn_time(self, answer: ApiResponse) -> tuple[datetime, timedelta]:
        """Return the server time and the clock skew, rounded down to seconds."""
        if answer.server_time is None:
            raise Broken("the Local API does not send a `Date` header")
        self.clock_skew = answer.server_time - self.tools.clock.now()
        return answer.server_time, self.clock_skew

    async def _sign_in(self) -> Grant:
        credentials = {
            "machine_id": self.settings.machine_id,
            "password": self.settings.password.get_secret_value(),
        }
        try:
            answer = await self._api.request(
                "POST", "/v1/watchers/login", json=credentials, signed=False
            )
        except CredentialsRefused as error:
            raise CredentialsRefused(
                f"machine_id or password: {error}; see `cscli machines list`",
                status=error.status,
                response=error.response,
            ) from None
        except Refused as error:
            raise Misconfigured(
                f"url: {error}; check that this is the address of a Local API, without /v1"
            ) from None
        _, skew = self._learn_time(answer)
        return parse_grant(answer.json, skew)
