"""ServiceNow records, through the Table API.

https://www.servicenow.com/docs/bundle/zurich-api-reference/page/integrate/inbound-rest/concept/c_TableAPI.html
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, ClassVar, Literal
from urllib.parse import quote

from pydantic import Field

from tocsin import (
    ApiResponse,
    Broken,
    Health,
    Idempotency,
    IncidentDisposition,
    Json,
    Misconfigured,
    PluginSettings,
    PushRequest,
    Refused,
    RemoteStatus,
    Ticket,
    TicketSettings,
    Tracker,
    parse_webhook_body,
    require_webhook_token,
)
from tocsin_plugins.ticketing.http_tracker import (
    HttpTracker,
    expect_object,
    expect_objects,
    expect_text,
    optional_text,
)
from tocsin_plugins.ticketing.markup import replace_unprintable
from tocsin_plugins.ticketing.servicenow.fields import (
    correlation_id,
    drop_priority_fields,
    journal_entry,
    priority_fields,
)
from tocsin_plugins.ticketing.servicenow.health import find_problems
from tocsin_plugins.ticketing.servicenow.responses import (
    expect_awake,
    expect_complete,
    explain_refusal,
)

API = "/api/now/table"
_CLOSED = {"incident": ("6", "7", "8"), "sn_si_incident": ("3", "7")}
"""Resolved, Closed and Canceled; Closed and Cancelled."""
_INACTIVE = " (inactive)"
_USUAL_CLOSED = ("3", "4", "7")
"""Closed Complete, Incomplete and Skipped, of `task` itself."""


class ServiceNowClosure(PluginSettings):
    """State and close code that Tocsin uses to close a record."""

    state: str | None = Field(default=None, description="State. By default, `closed_state`.")
    code: str | None = Field(default=None, description="Close code. By default, `close_code`.")


class ServiceNowOptions(Tracker.Options):
    """Options for ServiceNow."""

    display_values: bool = Field(
        default=False,
        description="Whether `assignee`, `fields` and `priorities` contain display values, such as "
        "a group's name, instead of stored values.",
    )
    comment_field: Literal["work_notes", "comments"] = Field(
        default="work_notes",
        description="Field to which Tocsin adds comments: `work_notes` (visible only to staff) or "
        "`comments` (also visible to callers).",
    )
    closed_state: str | None = Field(
        default=None,
        description="Stored value of the state that a record gets when Tocsin closes it. By "
        "default, this is 6 for incidents and 3 for other tables.",
    )
    close_code: str | None = Field(
        default=None, description="Close code that a record gets. Most instances require one."
    )
    close_as: Mapping[IncidentDisposition, ServiceNowClosure] = Field(
        default={},
        description="Overrides `closed_state`, `close_code` or both for incidents with certain "
        "dispositions, for example "
        '`{ "false-positive" = { state = "8", code = "Not an issue" } }`.',
    )
    close_notes: str | None = Field(
        default=None, description="Text of the close notes. By default, the reason for closing."
    )
    new_after_close: bool = Field(
        default=False,
        description="Whether Tocsin creates another record when the previous one is no longer "
        "active. Use this option if closed records are read-only in your instance.",
    )


class ServiceNow(HttpTracker):
    """Records in one table that extends `task`; each record's correlation ID is the key."""

    Options = ServiceNowOptions
    receiver = "servicenow"
    idempotency = Idempotency.SEARCH
    # How long a Table API transaction may continue after its client disconnects
    settling: ClassVar[timedelta | None] = timedelta(minutes=1)
    accepts_webhooks: ClassVar[bool] = True
    options: ServiceNowOptions

    def authorization(self) -> Mapping[str, str]:
        """Return the user and password; without a user, return the API key."""
        secret = self.settings.secret.get_secret_value()
        if self.settings.username is None:
            return {"x-sn-apikey": secret}
        login = f"{self.settings.username}:{secret}".encode()
        return {"Authorization": f"Basic {b64encode(login).decode()}"}

    async def answer(self, method: str, path: str, **options: Any) -> ApiResponse:
        """Return ServiceNow's response; errors include its reasons."""
        try:
            found = await super().answer(method, path, **options)
        except Broken as broken:
            raise expect_awake(broken) from broken
        except Refused as refused:
            raise explain_refusal(refused) from refused
        expect_complete(found.json)
        return found

    async def check(self) -> Health:
        """Report the problems that can be found without creating a record."""
        return await find_problems(self)

    async def find(self, key: str) -> str | None:
        """Return the sys_id of the first record with this correlation ID."""
        wanted = correlation_id(key)
        for found in await self.correlated(wanted):
            if self.options.new_after_close and found.get("active") == "false":
                continue
            return _sys_id(found)
        return None

    async def correlated(self, wanted: str) -> list[dict[str, Any]]:
        """Return the first records with this correlation ID.

        Raises `Misconfigured` if the field cannot be queried: ServiceNow ignores conditions on
        missing or hidden fields, and returns any record.
        """
        query = {
            "sysparm_query": f"correlation_id={wanted}^ORDERBYsys_created_on",
            "sysparm_fields": "sys_id,correlation_id,active",
            "sysparm_limit": 10,
        }
        found = expect_objects(await self.ask("GET", self._table, query=query), "result")
        if any(record.get("correlation_id") != wanted for record in found):
            raise Misconfigured(
                f"records of {self.settings.project} cannot be found by their correlation_id: "
                "grant the account read access to that field"
            )
        return found

    async def create(self, ticket: Ticket) -> str:
        """Create a record."""
        weights = priority_fields(ticket.priority)
        body = drop_priority_fields(ticket.body) if weights else dict(ticket.body)
        assignee = self.settings.assignee
        made: dict[str, Json] = {
            **body,
            **weights,
            **({"assigned_to": assignee} if assignee else {}),
            **ticket.fields,
            "correlation_id": correlation_id(ticket.key),
            "correlation_display": "Tocsin",
        }
        asked = {"sysparm_fields": "sys_id", **self._input}
        answer = await self.ask("POST", self._table, query=asked, json=replace_unprintable(made))
        return _sys_id(expect_object(answer, "result"))

    async def list_notes(self, identifier: str) -> Sequence[str]:
        """Return the whole journal as one text, as ServiceNow displays it.

        Everyone with access to the record can read it, whereas `sys_journal_field` is for
        administrators.
        """
        name = self.options.comment_field
        found = await self._show(identifier, name, sysparm_display_value="true")
        if name not in found:
            raise Misconfigured(f"{name} of {self.settings.project} is hidden from the account")
        return [str(found[name])]

    async def add_note(self, identifier: str, text: str) -> None:
        """Comment on a record."""
        await self._change(identifier, {self.options.comment_field: journal_entry(text)})

    async def update(self, identifier: str, ticket: Ticket) -> None:
        """Update the priority and the operator's fields of an open record."""
        changes = {**priority_fields(ticket.priority), **ticket.fields}
        if changes and await self.is_open(identifier):
            await self._change(identifier, changes, self._input)

    async def read_status(self, identifier: str) -> RemoteStatus | None:
        """Return a record's state; a record is open if it is active, and not resolved or closed."""
        try:
            found = await self._show(identifier, "active,state,close_code,sys_updated_on")
        except Refused as refused:
            if refused.is_missing:
                return None
            raise
        state, is_active = expect_text(found, "state"), found.get("active") != "false"
        is_open = is_active and state not in self._ends
        return RemoteStatus(
            status=state if is_active else f"{state}{_INACTIVE}",
            is_open=is_open,
            resolution=None if is_open else optional_text(found.get("close_code")),
            version=optional_text(found.get("sys_updated_on")),
        )

    async def is_open(self, identifier: str) -> bool | None:
        """Return whether a record is open; None if it is inactive and `new_after_close` is set."""
        found = await self.read_status(identifier)
        if found is None or (self.options.new_after_close and found.status.endswith(_INACTIVE)):
            return None
        return found.is_open

    async def list_closed_statuses(self) -> Sequence[str]:
        """Return the numbers of the closed states, active or not."""
        return [f"{state}{suffix}" for state in self._ends for suffix in ("", _INACTIVE)]

    async def close(self, identifier: str, reason: str) -> None:
        """Set the state in `closed_state`."""
        await self.close_as(identifier, reason, None)

    async def close_as(
        self, identifier: str, reason: str, disposition: IncidentDisposition | None
    ) -> None:
        """Set the state and the close code for a disposition, with the reason."""
        closure = ServiceNowClosure()
        if disposition is not None:
            closure = self.options.close_as.get(disposition, closure)
        code = closure.code or self.options.close_code
        changes: dict[str, Json] = {
            "state": closure.state or self._closed,
            **({"close_code": code} if code else {}),
            "close_notes": self.options.close_notes or reason,
            self.options.comment_field: reason,
        }
        await self._change(identifier, changes)

    @classmethod
    def parse_webhook(
        cls,
        settings: TicketSettings,
        request: PushRequest,
        now: datetime,  # noqa: ARG003 - the signature has no time
    ) -> Sequence[str]:
        """Return the record that a business rule names by its sys_id."""
        require_webhook_token(settings, request)
        match parse_webhook_body(request):
            case {"sys_id": str(identifier)}:
                return (identifier,)
        return ()

    def link(self, identifier: str) -> str:
        """Return the URL of a record's page."""
        page = f"{self.settings.project}.do?sys_id={identifier}"
        return f"{self.settings.url}/nav_to.do?uri={quote(page, safe='')}"

    @property
    def _table(self) -> str:
        return f"{API}/{quote(self.settings.project, safe='')}"

    @property
    def _input(self) -> dict[str, str]:
        return {"sysparm_input_display_value": "true"} if self.options.display_values else {}

    @property
    def _closed_states(self) -> tuple[str, ...]:
        return _CLOSED.get(self.settings.project, _USUAL_CLOSED)

    @property
    def _ends(self) -> Sequence[str]:
        """The states of closed records: the configured ones, and those of the table."""
        own = (closure.state for closure in self.options.close_as.values() if closure.state)
        return list(dict.fromkeys((self._closed, *own, *self._closed_states)))

    @property
    def _closed(self) -> str:
        return self.options.closed_state or self._closed_states[0]

    async def _show(self, identifier: str, fields: str, **query: str) -> dict[str, Any]:
        asked = {"sysparm_fields": fields, **query}
        return expect_object(await self.ask("GET", self._record(identifier), query=asked), "result")

    async def _change(
        self, identifier: str, changes: Mapping[str, Json], query: Mapping[str, str] | None = None
    ) -> None:
        asked = {"sysparm_fields": "sys_id", **(query or {})}
        body = replace_unprintable(dict(changes))
        await self.ask("PATCH", self._record(identifier), query=asked, json=body)

    def _record(self, identifier: str) -> str:
        return f"{self._table}/{quote(identifier, safe='')}"


def _sys_id(found: Mapping[str, Any]) -> str:
    sys_id = found.get("sys_id")
    if isinstance(sys_id, str) and sys_id:
        return sys_id
    raise Broken("ServiceNow's response lacks the sys_id")
