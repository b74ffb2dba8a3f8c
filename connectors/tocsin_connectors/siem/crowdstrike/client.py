"""Falcon client for one customer: sign-in, alerts and changes.

https://www.falconpy.io/Service-Collections/Alerts.html
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any

from tocsin import (
    Api,
    ApiResponse,
    Broken,
    CredentialsRefused,
    Grant,
    Misconfigured,
    Refused,
    Tools,
)
from tocsin_connectors.responses import expect_object, get_page_token
from tocsin_connectors.siem.crowdstrike import pagination
from tocsin_connectors.siem.crowdstrike.pagination import AlertCursor, AlertPage
from tocsin_connectors.siem.crowdstrike.settings import FALCON_CLOUDS, CrowdStrikeSettings
from tocsin_connectors.siem.records import child, children, number

TOKEN = "/oauth2/token"  # noqa: S105 - a path
LIST = "/alerts/combined/alerts/v1"
BY_ID = "/alerts/entities/alerts/v2"
CHANGE = "/alerts/entities/alerts/v3"
FalconRecord = dict[str, Any]


class FalconClient:
    """Requests to one cloud. All raise what `Api.request` raises."""

    def __init__(self, settings: CrowdStrikeSettings, tools: Tools) -> None:
        """Store the dependencies. Performs no I/O."""
        self._settings = settings
        self._clock = tools.clock
        self.api = Api(tools, settings, sign_in=self._sign_in)

    async def alerts(self, cursor: AlertCursor, end: datetime, limit: int) -> AlertPage:
        """Return a page of the alerts updated before `end`, oldest first."""
        body = {
            "filter": pagination.build_update_filter(cursor.since, end),
            "sort": pagination.UPDATE_ORDER,
            "limit": limit,
        }
        if cursor.after is not None:
            body["after"] = cursor.after
        answer = await self.api.request("POST", LIST, json=body)
        page = _parse_object(answer, LIST)
        paging = child(child(page, "meta"), "pagination")
        total, records = number(paging, "total"), page.get("resources")
        if total == 0 and records is None:
            records = []
        if total is None or not isinstance(records, list) or not _are_objects(records):
            raise Broken(
                f"POST {LIST} returned a response without `resources` or `meta.pagination.total`"
            )
        return AlertPage(records, total, get_page_token(paging, "after"), answer.server_time)

    async def alert(self, identifier: str) -> FalconRecord | None:
        """Return an alert by its composite ID, or None if it does not exist."""
        try:
            answer = await self.api.request("POST", BY_ID, json={"composite_ids": [identifier]})
        except Refused as refused:
            if refused.is_missing:
                return None
            raise
        body = _parse_object(answer, BY_ID, but_for=HTTPStatus.NOT_FOUND)
        if "resources" not in body:
            raise Broken(f"POST {BY_ID} returned a response without `resources`")
        return next(iter(children(body, "resources")), None)

    async def change(self, identifiers: list[str], actions: Mapping[str, str]) -> None:
        """Change alerts with action parameters."""
        parameters = [{"name": name, "value": value} for name, value in actions.items()]
        body = {"composite_ids": identifiers, "action_parameters": parameters}
        _parse_object(await self.api.request("PATCH", CHANGE, json=body), CHANGE)

    async def _sign_in(self) -> Grant:
        """Request a grant with client credentials (RFC 6749 section 4.4).

        Raises `Misconfigured` if the customer is in another cloud.
        """
        form = {
            "client_id": self._settings.client_id,
            "client_secret": self._settings.client_secret.get_secret_value(),
        }
        if self._settings.member_cid:
            form["member_cid"] = self._settings.member_cid
        answer = await self._token(form)
        self._check_region(answer.headers.get("X-Cs-Region"))
        match answer.json:
            case {"access_token": str(token), "expires_in": int(seconds)} if token:
                return Grant(f"Bearer {token}", self._clock.now() + timedelta(seconds=seconds))
        raise Broken(f"POST {TOKEN} returned a response without `access_token` and `expires_in`")

    async def _token(self, form: Mapping[str, str]) -> ApiResponse:
        try:
            return await self.api.request("POST", TOKEN, form=form, signed=False)
        except Misconfigured:
            raise
        except Refused as refused:
            status = refused.status or 0
            if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
                raise Misconfigured(f"{refused}: set `cloud` to the customer's cloud") from refused
            raise CredentialsRefused(
                str(refused), status=refused.status, response=refused.response
            ) from refused

    def _check_region(self, region: str | None) -> None:
        expected = FALCON_CLOUDS[self._settings.cloud].api
        if (
            region in FALCON_CLOUDS
            and region != self._settings.cloud
            and self._settings.url == expected
        ):
            raise Misconfigured(f'the customer is in another cloud: set cloud = "{region}"')


def _parse_object(answer: ApiResponse, path: str, but_for: int | None = None) -> FalconRecord:
    """Return the object in a response. Raises `Broken` if it reports errors despite its status."""
    found = expect_object(answer.json, path)
    errors = [error for error in children(found, "errors") if error.get("code") != but_for]
    if errors:
        raise Broken(f"{path} returned errors: {errors!r:.300}")
    return found


def _are_objects(records: list[Any]) -> bool:
    return all(isinstance(record, dict) for record in records)
