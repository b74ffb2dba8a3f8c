"""A CrowdSec Local API as a provider: signing in, listing, reading one alert again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from pydantic import Field, SecretStr

from tocsin import (
    Answer,
    Api,
    ApiSettings,
    Broken,
    CredentialsRefused,
    Duration,
    Grant,
    Health,
    Incident,
    Listing,
    Refused,
    Tools,
    TryLater,
    Window,
    WindowedProvider,
)
from tocsin_connectors.siem.crowdsec.alerts import (
    created_at,
    incident_of,
    is_blocklist,
    settled,
)
from tocsin_connectors.siem.crowdsec.times import go_duration, parse_time
from tocsin_connectors.siem.crowdsec.walk import Step

_ALERTS = "/v1/alerts"
_NOT_FOUND = 404
_ATTEMPTS = 3
_SLACK = timedelta(seconds=2)
"""More than the field `Date`, in whole seconds, leaves open."""


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

    permissions = ("a validated machine (cscli machines add); an API key of a bouncer is no use",)

    def __init__(self, settings: Any, tools: Tools) -> None:
        """Keep what is needed; do no I/O."""
        super().__init__(settings, tools)
        self._api = Api(tools, settings, sign_in=self._sign_in)

    async def check(self) -> Health:
        """Return that alerts can be read; raises what `Api.request` raises where they cannot."""
        _list(await self._api.get(_ALERTS, limit=1))
        return Health(detail=f"{self.settings.url} lets {self.settings.machine_id} read alerts")

    async def list_changes(
        self,
        stream: str,  # noqa: ARG002 - there is only one
        window: Window,
        token: Any,
        limit: int,
    ) -> Listing:
        """Return a page of the alerts created in the window, the newest first."""
        step = Step.first(window, limit) if token is None else Step.decode(token)
        alerts, server_time = await self._newest(step)
        following = step.following([created_at(alert) for alert in alerts], window, limit)
        return Listing(
            records=[settled(alert) for alert in alerts if _belongs(alert, window)],
            next_token=following and following.encode(),
            server_time=server_time,
        )

    def to_incident(self, record: Mapping[str, Any]) -> Incident | None:
        """Return the incident that an alert is, None for an update of a blocklist.

        Raises ValueError where the alert has no usable id or time of creation.
        """
        alert = dict(record)
        return None if is_blocklist(alert) else incident_of(alert)

    async def incident(self, external_id: str) -> Incident | None:
        """Return the alert as it is now, None where it was deleted or its id is another's now."""
        number = external_id.partition("@")[0]
        if not number.isdecimal():
            return None
        try:
            answer = await self._api.get(f"{_ALERTS}/{number}")
        except Refused as error:
            if error.status == _NOT_FOUND:
                return None
            raise
        try:
            found = incident_of(settled(dict(answer.json)))
        except (TypeError, ValueError) as error:
            raise Broken(f"GET {_ALERTS}/{number} answered no alert: {error}") from None
        return found if found.external_id == external_id else None

    async def _newest(self, step: Step) -> tuple[Sequence[dict[str, Any]], datetime]:
        """Return the newest alerts created before the step's end, or moments later, and the time.

        The bound is given as an age, which the server holds against its own clock; where that
        turns out to be behind what was assumed, alerts are missing, and it is asked again.
        """
        for _ in range(_ATTEMPTS):
            assumed = self.clock_skew
            now = self.tools.clock.now() + (assumed or timedelta(0))
            age = max(now - step.until - _SLACK, timedelta(0))
            answer = await self._api.get(_ALERTS, limit=step.size, created_before=go_duration(age))
            server_time, skew = self._learn_time(answer)
            if assumed is not None and assumed - skew <= _SLACK:
                return _list(answer), server_time
        raise TryLater("how far the Local API's clock is ahead of ours cannot be made out")

    def _learn_time(self, answer: Answer) -> tuple[datetime, timedelta]:
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
        _, skew = self._learn_time(answer)
        return _grant(answer.json, skew)


def _grant(json: Any, skew: timedelta) -> Grant:
    """Return what a sign-in brought, with its end by our own clock."""
    match json:
        case {"token": str(token), "expire": str(expire)}:
            try:
                return Grant(f"Bearer {token}", parse_time(expire) - skew)
            except ValueError as error:
                raise Broken(f"POST /v1/watchers/login: {error}") from None
    raise Broken("POST /v1/watchers/login answered without a token and its end")


def _list(answer: Answer) -> Sequence[dict[str, Any]]:
    """Return the alerts of an answer; `null` means that there are none, no body that it broke."""
    if answer.json is None and answer.headers.get("Content-Length") != "0":
        return ()
    alerts = answer.json
    if not isinstance(alerts, list) or not all(isinstance(alert, dict) for alert in alerts):
        raise Broken(f"GET {_ALERTS} answered something else than a list of alerts")
    return alerts


def _belongs(alert: dict[str, Any], window: Window) -> bool:
    """Return whether an alert is one of the window; one that does not say is not left out."""
    moment = created_at(alert)
    return moment is None or moment in window
