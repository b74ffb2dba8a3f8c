"""Simulated Microsoft cloud: sign-in and tokens."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar

from aiohttp import web
from tests.connectors.microsoft.kql_reader import BadQuery, Query, read

from tocsin import Entity, EntityKind
from tocsin.testing import ErrorResponse, LogEvent, Simulator
from tocsin_connectors.microsoft.clouds import MICROSOFT_CLOUDS

TENANT = "8f2c0d34-5f0e-4f0b-9c39-0d6f6a2e1b11"
TOKEN_PATH = f"/{TENANT}/oauth2/v2.0/token"
CLIENT = {"client_id": "a1b2c3d4-0000-4000-8000-00000000c0de", "client_secret": "a secret"}
CREDENTIALS = {"tenant_id": TENANT, **CLIENT}
# Where the simulated logs have what, by the kind of an entity
PLACES = {
    EntityKind.IP: ("DeviceNetworkEvents", "RemoteIP"),
    EntityKind.HOST: ("DeviceNetworkEvents", "DeviceName"),
    EntityKind.USER: ("IdentityLogonEvents", "AccountUpn"),
    EntityKind.EMAIL: ("EmailEvents", "SenderFromAddress"),
}


def stamp(moment: datetime) -> str:
    """Return a time as .NET writes it, to a tenth of a microsecond."""
    return f"{moment:%Y-%m-%dT%H:%M:%S.%f}{moment.microsecond % 10}Z"


class MicrosoftSimulator(Simulator):
    """Signs in apps; a token is good for what it was asked for, and for nothing else."""

    open_paths = (TOKEN_PATH,)
    time_column: ClassVar[str]
    audiences: ClassVar[Mapping[str, str]]
    """By the beginning of a path, for what its token has to be; the longest counts."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.absent_tables: set[str] = set()
        """Tables that this customer does not have."""
        self.queries: list[Query] = []
        self._audiences: dict[str, str] = {}

    def entra_routes(self) -> list[web.RouteDef]:
        return [web.post("/{tenant}/oauth2/v2.0/token", self.sign_in)]

    async def sign_in(self, request: web.Request) -> web.Response:
        form = dict(await request.post())
        audience, _, rest = str(form.pop("scope")).rpartition("/")
        if form.pop("grant_type") != "client_credentials" or rest != ".default":
            raise ErrorResponse(400, "AADSTS70011: invalid_scope")
        if audience not in {
            MICROSOFT_CLOUDS["public"].graph,
            MICROSOFT_CLOUDS["public"].management,
            MICROSOFT_CLOUDS["public"].logs,
        }:
            raise ErrorResponse(400, f"AADSTS500011: invalid_resource: {audience}")
        if request.match_info["tenant"] != TENANT:
            raise ErrorResponse(400, "AADSTS90002: Tenant not found")
        if form["client_id"] != CLIENT["client_id"]:
            raise ErrorResponse(400, "AADSTS700016: unauthorized_client")
        if form != CLIENT:
            raise ErrorResponse(401, "AADSTS7000215: Invalid client secret provided")
        token = self.token_for(audience)
        seconds = int(self.session_lifetime.total_seconds())
        return self.json({"token_type": "Bearer", "expires_in": seconds, "access_token": token})

    def token_for(self, audience: str) -> str:
        token = self.begin_session()
        self._audiences[token] = audience
        return token

    def is_signed(self, request: web.Request) -> bool:
        if request.path.endswith("/oauth2/v2.0/token"):  # of another tenant
            return True
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        begins = max(
            (audience for audience in self.audiences if request.path.startswith(audience)), key=len
        )
        return super().is_signed(request) and self._audiences[token] == self.audiences[begins]

    # queries in KQL

    def found_by(self, query: str) -> list[dict[str, Any]]:
        """Return the rows of a query; Refusal 400 for one that is not of the expected form."""
        if query == "print Tocsin = 1":
            return [{"Tocsin": 1}]
        try:
            asked = read(query)
        except BadQuery as error:
            raise ErrorResponse(400, f"BadRequest: {error}") from error
        self.queries.append(asked)
        entities = [
            Entity(kind, asked.wanted)
            for leg in asked.legs
            for kind, (table, column) in PLACES.items()
            if leg.table == table
            and (column,) in leg.columns
            and leg.table not in self.absent_tables
        ]
        if any(leg.time != self.time_column for leg in asked.legs):
            raise ErrorResponse(400, "BadRequest: no such column")
        rows = [row for entity in entities for row in self._rows(asked, entity)]
        rows.sort(key=lambda row: str(row["EventTime"]), reverse=True)
        return rows[: asked.limit]

    def _rows(self, asked: Query, entity: Entity) -> list[dict[str, Any]]:
        found: list[LogEvent] = []
        while chunk := self.logged(
            asked.window, entity, limit=asked.limit - len(found), offset=len(found)
        ):
            found += chunk
        return [self.row(item, PLACES[entity.kind][0]) for item in found]

    def row(self, log_event: LogEvent, table: str) -> dict[str, Any]:
        record = self.show_log_event(log_event)
        return {
            "EventTime": record[self.time_column],
            "EventTable": table,
            "EventRecord": record,
        }

    def render_log_event(self, log_event: LogEvent) -> dict[str, Any]:
        named = {
            PLACES[entity.kind][1]: entity.value
            for entity in log_event.entities
            if entity.kind in PLACES
        }
        return {
            self.time_column: stamp(log_event.occurred_at),
            "ActionType": log_event.text,
            "InitiatingProcessFileName": "curl.exe",
            **named,
        }
