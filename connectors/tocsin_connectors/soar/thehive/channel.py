"""Channel `thehive`: https://docs.strangebee.com/thehive/api-docs/."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any, Self
from urllib.parse import quote

from pydantic import Field, SecretStr, model_validator

from tocsin import (
    Broken,
    CaseChannel,
    Health,
    IncidentDisposition,
    Json,
    Observable,
    PushRequest,
    Refused,
    RemoteStatus,
    Resolutions,
    StatusInterval,
    WebhookSecret,
    find_unmapped,
    parse_webhook_body,
    require_status_interval,
    require_webhook_token,
)
from tocsin_connectors.responses import expect_object, expect_objects

_ALERTS = "/api/v1/alert"
_PAGE_SIZE, _MAX_RECORDS = 500, 20_000
_NAMED = ("alert", "case")
"""Object types that have a status; webhooks of version 0 write them in lowercase."""
_OPEN_STAGES = ("New", "InProgress")
_CLOSED_CASES = ("TruePositive", "FalsePositive", "Indeterminate", "Duplicated", "Other")
_REQUIRED_PERMISSIONS = (
    "manageAlert/create",
    "manageAlert/update",
    "manageComment",
    "manageObservable",
)


AlertStatus = Annotated[str, Field(min_length=1, max_length=64)]


class TheHiveSettings(CaseChannel.Settings):
    """Settings of a `thehive` destination."""

    template: str = Field(
        default="thehive", description="Receiver whose templates render the alert."
    )
    api_key: SecretStr = Field(description="API key of a TheHive user.")
    organisation: str | None = Field(
        default=None,
        description="Organisation in which Tocsin creates alerts, if the user belongs to several "
        "organisations.",
    )
    status_interval: StatusInterval = None
    resolutions: Resolutions
    webhook_secret: WebhookSecret
    closed_status: AlertStatus = Field(
        default="Ignored",
        description="Status that an alert gets when Tocsin closes it. In TheHive, this status must "
        "have the stage Closed.",
    )
    close_as: Mapping[IncidentDisposition, AlertStatus] = Field(
        default={},
        description="Overrides `closed_status` for incidents with certain dispositions, for "
        'example `{ "false-positive" = "False alarm" }`.',
    )

    @model_validator(mode="after")
    def _require_interval(self) -> Self:
        require_status_interval(self)
        return self


class TheHive(CaseChannel[TheHiveSettings]):
    """Creates alerts; if an alert is part of a case, updates go to the case."""

    status_batch = 20

    def authorization(self) -> Mapping[str, str]:
        """Return the API key and organisation headers."""
        chosen = self.settings.organisation
        return {
            "Authorization": f"Bearer {self.settings.api_key.get_secret_value()}",
            **({"X-Organisation": chosen} if chosen else {}),
        }

    async def check(self) -> Health:
        """Report which user the key belongs to, and which permissions are missing."""
        user = expect_object(await self.ask("GET", "/api/v1/user/current"), "TheHive")
        given = [
            permission for permission in user.get("permissions", ()) if isinstance(permission, str)
        ]
        missing = [
            permission
            for permission in _REQUIRED_PERMISSIONS
            if not {permission, permission.partition("/")[0]} & set(given)
        ]
        name = user.get("login", "its user")
        return Health(
            detail=f"TheHive responds and accepts the API key of {name}",
            problems=(
                *(f"{name} lacks the permission {permission}" for permission in missing),
                *find_unmapped(self.settings, await self.list_closed_statuses()),
            ),
        )

    async def find(self, key: str) -> str | None:
        """Return the ID of the alert with this reference, or None."""
        by_reference = {"_name": "filter", "_field": "sourceRef", "_value": key}
        found = await self._query({"_name": "listAlert"}, by_reference)
        return _get_id(found[0]) if found else None

    async def create(
        self, key: str, body: dict[str, Any], observables: Sequence[Observable]
    ) -> tuple[str, bool]:
        """Create an alert with its observables, or return the existing one."""
        alert = {**body, "sourceRef": key, "observables": _build_observables(observables)}
        try:
            return _get_id(await self.ask("POST", _ALERTS, json=alert)), True
        except Refused as refused:
            # A duplicate type, source and reference is refused like any invalid request
            if refused.status != HTTPStatus.BAD_REQUEST:
                raise
        if found := await self.find(key):
            return found, False
        # Perhaps one observable is invalid: create the alert without them, then add them
        made = _get_id(await self.ask("POST", _ALERTS, json={**alert, "observables": []}))
        await self.add_observables(made, observables)
        return made, True

    async def is_open(self, identifier: str) -> bool | None:
        """Return whether the alert is open and not part of a case."""
        try:
            alert = await self._alert(identifier)
        except Refused as refused:
            if refused.is_missing:
                return None
            raise
        return alert.get("stage") in _OPEN_STAGES

    async def add_observables(self, identifier: str, observables: Sequence[Observable]) -> int:
        """Add the observables that the alert or its case lacks."""
        if not observables:
            return 0
        kind, home = await self._locate(identifier)
        known = {_get_identity(part) for part in await self._parts(kind, home, "observables")}
        wanted = _build_observables(observables)
        lacking = [observable for observable in wanted if _get_identity(observable) not in known]
        added = [
            await self._add(f"/api/v1/{kind}/{quote(home)}/observable", value) for value in lacking
        ]
        return sum(added)

    async def _add(self, path: str, observable: dict[str, Any]) -> bool:
        """Add an observable, and return whether TheHive accepted it."""
        try:
            await self.ask("POST", path, json=observable)
        except Refused as refused:
            if refused.status != HTTPStatus.BAD_REQUEST:
                raise
            self.tools.log.warning("observable rejected", reason=str(refused))
            return False
        return True

    async def list_notes(self, identifier: str) -> Sequence[str]:
        """Return the comments of the alert, or of its case."""
        comments = await self._parts(*await self._locate(identifier), "comments")
        return [str(comment.get("message")) for comment in comments]

    async def add_note(self, identifier: str, title: str, text: str) -> None:
        """Add a comment to the alert, or to its case."""
        kind, home = await self._locate(identifier)
        message = {"message": f"**{title}**\n\n{text}"}
        await self.ask("POST", f"/api/v1/{kind}/{quote(home)}/comment", json=message)

    async def close(self, identifier: str, reason: str) -> None:
        """Set the status in `closed_status`."""
        await self.close_as(identifier, reason, None)

    async def close_as(
        self, identifier: str, reason: str, disposition: IncidentDisposition | None
    ) -> None:
        """Set the closed status for a disposition, and put the reason into the summary."""
        status = self.settings.closed_status
        if disposition is not None:
            status = self.settings.close_as.get(disposition, status)
        change = {"status": status, "summary": reason}
        await self.ask("PATCH", f"{_ALERTS}/{quote(identifier)}", json=change)

    async def read_statuses(self, identifiers: Sequence[str]) -> Mapping[str, RemoteStatus]:
        """Return the statuses of alerts, or those of their cases."""
        found = {identifier: await self._read_status(identifier) for identifier in identifiers}
        return {identifier: status for identifier, status in found.items() if status is not None}

    async def _read_status(self, identifier: str) -> RemoteStatus | None:
        try:
            record = await self._alert(identifier)
            case = record.get("caseId")
            if isinstance(case, str):
                path = f"/api/v1/case/{quote(case)}"
                record = expect_object(await self.ask("GET", path), "TheHive")
        except Refused as refused:
            if refused.is_missing:
                return None
            raise
        status, changed_at = record.get("status"), record.get("_updatedAt")
        if not isinstance(status, str):
            raise Broken("TheHive's response lacks status")
        return RemoteStatus(
            status=status,
            is_open=record.get("stage") in _OPEN_STAGES,
            version=None if changed_at is None else str(changed_at),
            parent_id=case if isinstance(case, str) else None,
        )

    async def list_closed_statuses(self) -> Sequence[str]:
        """Return the closed statuses that every TheHive has; custom statuses are unknown."""
        own = (self.settings.closed_status, *self.settings.close_as.values())
        return tuple(dict.fromkeys((*own, *_CLOSED_CASES)))

    @classmethod
    def parse_webhook(
        cls,
        settings: TheHiveSettings,
        request: PushRequest,
        now: datetime,  # noqa: ARG003 - TheHive signs no time
    ) -> Sequence[str]:
        """Return the alert or the case that a notification names.

        https://docs.strangebee.com/thehive/user-guides/organization/configure-organization/manage-notifications/notifiers/webhook/
        """
        require_webhook_token(settings, request)
        match parse_webhook_body(request):
            case {"objectType": str(kind), "objectId": str(identifier)} if kind.lower() in _NAMED:
                return (identifier,)
        return ()

    def link(self, identifier: str) -> str:
        """Return the URL of the alert."""
        return f"{self.settings.url}/alerts/{quote(identifier)}/details"

    async def _locate(self, identifier: str) -> tuple[str, str]:
        """Return where to add observables and comments: to the alert or to its case."""
        case = (await self._alert(identifier)).get("caseId")
        return ("case", case) if isinstance(case, str) else ("alert", identifier)

    async def _alert(self, identifier: str) -> dict[str, Any]:
        return expect_object(await self.ask("GET", f"{_ALERTS}/{quote(identifier)}"), "TheHive")

    async def _parts(self, kind: str, home: str, part: str) -> list[dict[str, Any]]:
        return await self._query({"_name": f"get{kind.title()}", "idOrName": home}, {"_name": part})

    async def _query(self, *steps: dict[str, Json]) -> list[dict[str, Any]]:
        """Return all results of a query, page by page."""
        records = list[dict[str, Any]]()
        while True:
            first = len(records)
            page = {"_name": "page", "from": first, "to": first + _PAGE_SIZE}
            found = await self.ask("POST", "/api/v1/query", json={"query": [*steps, page]})
            records += expect_objects(found if isinstance(found, list) else (), "TheHive")
            if len(records) < first + _PAGE_SIZE or len(records) >= _MAX_RECORDS:
                return records


def _get_id(record: Json) -> str:
    match record:
        case {"_id": str(identifier)}:
            return identifier
    raise Broken("TheHive returned a response without an _id")


def _build_observables(observables: Sequence[Observable]) -> list[dict[str, Any]]:
    """Return observables without duplicates, because several kinds of entities share a type."""
    built = (_build_observable(observable) for observable in observables)
    return list({_get_identity(value): value for value in built}.values())


def _build_observable(observable: Observable) -> dict[str, Any]:
    tags = [f"tocsin:{observable.kind.value}"]
    return {"dataType": observable.called or "other", "data": observable.value, "tags": tags}


def _get_identity(observable: Mapping[str, Any]) -> tuple[str, str]:
    return str(observable.get("dataType")), str(observable.get("data"))
