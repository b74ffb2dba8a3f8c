"""Provider for a JSON-RPC API with POST only, the token in the body, and errors with status 200."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any

from pydantic import BaseModel, Field, SecretStr, field_validator

from tocsin import (
    Api,
    ApiResponse,
    ApiSettings,
    Broken,
    CredentialsRefused,
    Entity,
    EntityKind,
    Health,
    Incident,
    IncidentStatus,
    Listing,
    PluginFailure,
    Refused,
    Severity,
    Tools,
    TryLater,
    Window,
    WindowedProvider,
)

SEVERITIES = {
    "1": Severity.INFORMATIONAL,
    "2": Severity.LOW,
    "3": Severity.MEDIUM,
    "4": Severity.HIGH,
    "5": Severity.CRITICAL,
}
STATUSES = {
    "open": IncidentStatus.NEW,
    "assigned": IncidentStatus.ACTIVE,
    "closed": IncidentStatus.CLOSED,
}
MARGIN = timedelta(seconds=30)
"""How long before a session ends the provider starts a new one."""


class RpcSettings(WindowedProvider.Settings, ApiSettings):
    """Settings under [providers.<name>]."""

    user: str = Field(description="Name of an API user.")
    password: SecretStr = Field(description="Password of the API user.")


class Record(BaseModel):
    """A case; `id` and the two times (in milliseconds) are required."""

    id: str = Field(min_length=1)
    opened: datetime
    updated: datetime
    subject: str | None = None
    text: str | None = None
    level: str | int | None = None
    state: str | None = None
    addresses: list[str] | None = None

    @field_validator("opened", "updated")
    @classmethod
    def _has_a_zone(cls, moment: datetime) -> datetime:
        if moment.tzinfo is None:
            raise ValueError("use milliseconds since 1970")
        return moment


class RpcProvider(WindowedProvider[RpcSettings]):
    """Reads cases and their changes."""

    permissions = ("cases.read",)

    def __init__(self, settings: RpcSettings, tools: Tools) -> None:
        """Store the arguments; perform no I/O."""
        super().__init__(settings, tools)
        self._api = Api(tools, settings)
        self._token = ""
        self._renew_at: datetime | None = None

    async def check(self) -> Health:
        """Return whether cases can be listed."""
        await self._call("cases.search", {"limit": 1})
        return Health(detail="cases are readable")

    async def list_changes(
        self,
        stream: str,  # noqa: ARG002 - there is one
        window: Window,
        token: Any,
        limit: int,
    ) -> Listing:
        """Return a page of the cases that changed in the window, the oldest first."""
        params = {
            "updated_from": to_milliseconds(window.start),
            "updated_to": to_milliseconds(window.end),
            "limit": limit,
            "page": token,
        }
        answer = await self._call("cases.search", params)
        match answer.json["result"]:
            case {"cases": list(records), "next": str() | None as following}:
                return Listing(
                    records=records, next_token=following, server_time=answer.server_time
                )
        raise Broken("cases.search: the result lacks `cases` and `next`")

    def to_incident(self, record: Mapping[str, Any]) -> Incident:
        """Return a case as an incident; raises ValueError if the record is malformed."""
        case = Record.model_validate(record)
        level = None if case.level is None else str(case.level)
        severity = SEVERITIES.get(level or "")
        return Incident(
            external_id=case.id,
            title=case.subject or "",
            description=case.text or "",
            severity=severity or Severity.MEDIUM,
            severity_assumed=severity is None,
            raw_severity=level,
            status=STATUSES.get((case.state or "").lower(), IncidentStatus.NEW),
            raw_status=case.state,
            occurred_at=case.opened,
            changed_at=case.updated,
            entities=tuple(Entity(EntityKind.IP, value) for value in case.addresses or ()),
        )

    async def incident(self, external_id: str) -> Incident | None:
        """Return the current version of a case; None if it was deleted."""
        try:
            answer = await self._call("cases.get", {"id": external_id})
        except Refused as refused:
            if refused.is_missing:
                return None
            raise
        return self.to_incident(answer.json["result"])

    async def _call(self, method: str, params: Mapping[str, Any]) -> ApiResponse:
        """Return the response to a call; if the session has ended, sign in again, but only once."""
        is_new = await self._sign_in()
        answer = await self._post(
            "/rpc", {"method": method, "params": params, "token": self._token}
        )
        failure = find_failure(method, answer)
        if (
            isinstance(failure, CredentialsRefused)
            and failure.status == HTTPStatus.UNAUTHORIZED
            and not is_new
        ):
            self._renew_at = None
            return await self._call(method, params)
        if failure is not None:
            raise failure
        return answer

    async def _sign_in(self) -> bool:
        """Start a session unless there is one, and return whether it is new."""
        now = self.tools.clock.now()
        if self._renew_at is not None and now < self._renew_at:
            return False
        password = self.settings.password.get_secret_value()
        answer = await self._post("/login", {"user": self.settings.user, "password": password})
        if failure := find_failure("login", answer):
            raise failure
        match answer.json["result"]:
            case {"token": str(token), "expires_in": int(seconds)}:
                self._token, self._renew_at = token, now + timedelta(seconds=seconds) - MARGIN
                return True
        raise Broken("login: the result lacks `token` and `expires_in`")

    async def _post(self, path: str, content: Mapping[str, Any]) -> ApiResponse:
        return await self._api.request("POST", path, json=content, signed=False)


def find_failure(method: str, answer: ApiResponse) -> PluginFailure | None:
    """Return the error that a response means; None for a result.

    Any other response is an error too, because it must never look like an empty list.
    """
    match answer.json:
        case {"error": {"code": int(code), "message": str(message)} as error}:
            return to_failure(code, f"{method}: {message} ({code})", error.get("retry_after"))
        case {"result": dict()}:
            return None
    return Broken(f"{method}: the response has neither `result` nor `error`")


def to_failure(code: int, message: str, delay: object) -> PluginFailure:
    """Return the error for a code; most codes are the same as in HTTP."""
    if code in (401, 403):
        return CredentialsRefused(message, status=code)
    if code in (429, 502, 503):
        after = timedelta(seconds=delay) if isinstance(delay, int) else None
        throttled = code == HTTPStatus.TOO_MANY_REQUESTS
        return TryLater(message, after=after, throttled=throttled, status=code)
    if HTTPStatus.BAD_REQUEST <= code < HTTPStatus.INTERNAL_SERVER_ERROR:
        return Refused(message, status=code)
    return Broken(message)


def to_milliseconds(moment: datetime) -> str:
    """Return a time as the API writes it."""
    return str(round(moment.timestamp() * 1000))
