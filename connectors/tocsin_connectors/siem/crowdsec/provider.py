"""A CrowdSec Local API as a provider: what it is asked, and by what time."""

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

_NOT_FOUND = 404
_ATTEMPTS = 3


class CrowdSec(WindowedProvider):
    """A CrowdSec Local API (LAPI), read as one of its machines."""

    class Settings(ApiSettings, WindowedProvider.Settings):
        """What a CrowdSec provider can be told."""

        machine_id: str = Field(
            min_length=1, description="The machine to sign in as; bouncers may not read alerts."
        )
        password: SecretStr = Field(description="That machine's password.")
        reread_after: tuple[Duration, ...] = Field(
            default=(timedelta(hours=1), timedelta(hours=5), timedelta(hours=25)),
            max_length=10,
            description="How long after an incident was new to read it again, to see whether its "
            "decisions have ended.",
        )

    event_kinds = ENTITY_KINDS
    permissions = ("a validated machine (cscli machines add); an API key of a bouncer is no use",)

    def __init__(self, settings: Any, tools: Tools) -> None:
        """Keep what is needed; do no I/O."""
        super().__init__(settings, tools)
        self._api = Api(tools, settings, sign_in=self._sign_in)

    async def check(self) -> Health:
        """Return that alerts can be read; raises what `Api.request` raises where they cannot."""
        parse_alerts(await self._api.get(ALERTS, limit=1))
        return Health(detail=f"{self.settings.url} lets {self.settings.machine_id} read alerts")

    async def list_changes(
        self,
        stream: str,  # noqa: ARG002 - there is only one
        window: Window,
        token: Any,
        limit: int,
    ) -> Listing:
        """Return a page of the alerts created in the window, the newest first."""
        step = (
            CrowdSecCursor.first(window, limit) if token is None else CrowdSecCursor.decode(token)
        )
        alerts, server_time = await self._newest(step)
        following = step.following([parse_creation_time(alert) for alert in alerts], window, limit)
        return Listing(
            records=[stabilize_decisions(alert) for alert in alerts if is_in_window(alert, window)],
            next_token=following and following.encode(),
            server_time=server_time,
        )

    def to_incident(self, record: Mapping[str, Any]) -> Incident | None:
        """Return the incident that an alert is, None for an update of a blocklist.

        Raises ValueError where the alert has no usable id or time of creation.
        """
        alert = dict(record)
        return None if is_blocklist(alert) else build_incident(alert)

    async def incident(self, external_id: str) -> Incident | None:
        """Return the alert as it is now, None where it was deleted or its id is another's now."""
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
            raise Broken(f"GET {ALERTS}/{number} answered no alert: {error}") from None
        return found if found.external_id == external_id else None

    async def events(
        self, entity: Entity, window: Window, limit: int
    ) -> AsyncGenerator[SiemEvent, None]:
        """Yield the lines that CrowdSec counted and what it decided, of an address or a user.

        Of more, it is those of the alerts that were created last. Other kinds of entity cannot be
        asked for.
        """
        found: dict[str | None, SiemEvent] = {}
        asked = next(parse_entity(entity.kind, entity.value), entity)  # in its usual spelling
        for query in build_queries(asked):
            alerts, now = await self._find_alerts(query, window, limit)
            for alert in alerts:
                with suppress(ValueError):  # what is no alert costs no other
                    lines, decisions = find_lines(alert, asked), find_decisions(alert, asked, now)
                    found.update((line.external_id, line) for line in (*lines, *decisions))
        events = [event for event in found.values() if event.occurred_at in window]
        for event in sorted(events, key=lambda it: it.occurred_at, reverse=True)[:limit]:
            yield event

    async def _find_alerts(
        self, query: Mapping[str, str], window: Window, limit: int
    ) -> tuple[Sequence[dict[str, Any]], datetime]:
        """Return alerts, the newest first, and what time the server has."""

        def filters(now: datetime) -> Mapping[str, str]:
            return {**query, **build_time_filters(window, now)}

        size = MAX_GROWTH
        while True:
            alerts, server_time = await self._ask(filters, size)
            if len(alerts) < size or size >= limit:
                return [alert for alert in alerts if not is_blocklist(alert)], server_time
            size += MAX_GROWTH  # and no more, see `walk`

    async def _newest(self, step: CrowdSecCursor) -> tuple[Sequence[dict[str, Any]], datetime]:
        """Return the newest alerts created before the step's end, or moments later; the time."""

        def filters(now: datetime) -> Mapping[str, str]:
            return {
                "created_before": format_duration(
                    max(now - step.until - CLOCK_TOLERANCE, timedelta(0))
                )
            }

        return await self._ask(filters, step.size)

    async def _ask(
        self, filters: Callable[[datetime], Mapping[str, str]], limit: int
    ) -> tuple[Sequence[dict[str, Any]], datetime]:
        """Return the newest alerts that filters made of the server's time let by, and that time.

        Bounds are given as ages, which the server holds against its own clock; where that turns
        out to be another than what was assumed, alerts are missing, and it is asked again.
        """
        for _ in range(_ATTEMPTS):
            assumed = self.clock_skew
            now = self.tools.clock.now() + (assumed or timedelta(0))
            answer = await self._api.get(ALERTS, limit=limit, **filters(now))
            server_time, skew = self._learn_time(answer)
            if assumed is not None and abs(assumed - skew) <= CLOCK_TOLERANCE:
                return parse_alerts(answer), server_time
        raise TryLater("how far the Local API's clock is ahead of ours cannot be made out")

    def _learn_time(self, answer: ApiResponse) -> tuple[datetime, timedelta]:
        """Return what time the server has, and how far that is ahead of ours, or a little less."""
        if answer.server_time is None:
            raise Broken("the Local API does not say what time it is (field Date)")
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
                f"url: {error}; perhaps it is no Local API's: give the address without /v1"
            ) from None
        _, skew = self._learn_time(answer)
        return parse_grant(answer.json, skew)
