"""Simulator of TheHive 5: the part of its API that the channel uses, with its quirks."""

from __future__ import annotations

from typing import Any, ClassVar

from aiohttp import web

from tocsin.testing import ErrorResponse, ReceiverSimulator, RemoteObject

KEY = "a key of TheHive"
STAGES = {"New": "New", "Pending": "InProgress", "Ignored": "Closed", "Imported": "Imported"}
STAGES |= {"FalsePositive": "Closed"}  # of a case


class TheHiveSimulator(ReceiverSimulator):
    permissions: ClassVar = (
        "manageAlert/create",
        "manageAlert/update",
        "manageComment",
        "manageObservable",
    )

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.alerts: dict[str, dict[str, Any]] = {}
        self.cases: dict[str, dict[str, Any]] = {}
        self.meanwhile = False
        """Whether someone else creates the next alert, with less content, before the request."""

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/api/v1/user/current", self.user),
            web.post("/api/v1/query", self.query),
            web.post("/api/v1/alert", self.create),
            web.get("/api/v1/{kind:alert|case}/{id}", self.show),
            web.patch("/api/v1/alert/{id}", self.change),
            web.post("/api/v1/{kind:alert|case}/{id}/observable", self.observe),
            web.post("/api/v1/{kind:alert|case}/{id}/comment", self.comment),
        ]

    def is_signed(self, request: web.Request) -> bool:
        return request.headers.get("Authorization") == f"Bearer {KEY}"

    def objects(self) -> list[RemoteObject]:
        return [self._object(alert) for alert in self.alerts.values()]

    def _object(self, alert: dict[str, Any]) -> RemoteObject:
        home = self.cases.get(alert.get("caseId", ""), alert)
        return RemoteObject(
            id=alert["_id"],
            observables=[observable["data"] for observable in home["observables"]],
            notes=[comment["message"] for comment in home["comments"]],
            is_open=STAGES[alert["status"]] in ("New", "InProgress"),
        )

    def remove(self, identifier: str) -> None:
        del self.alerts[identifier]

    def promote(self, identifier: str) -> dict[str, Any]:
        """Turn an alert into a case, as an analyst does."""
        alert = self.alerts[identifier]
        name = f"~{self.next_number()}"
        self.cases[name] = {
            "_id": name,
            "status": "New",
            "observables": list(alert["observables"]),
            "comments": [],
        }
        alert |= {"caseId": name, "status": "Imported"}
        return self.cases[name]

    async def user(self, request: web.Request) -> web.Response:
        given = [permission for permission in self.permissions if permission not in self.lacks]
        return self.json({"login": "tocsin@example.com", "permissions": given})

    async def create(self, request: web.Request) -> web.Response:
        alert = await request.json()
        unique = ("type", "source", "sourceRef")
        for name, most in (*((item, 128) for item in unique), ("title", 512)):
            if not 1 <= len(alert.get(name, "")) <= most:
                raise ErrorResponse(400, f"{name} is wrong")
        if self.meanwhile:
            self.meanwhile = False
            self._keep({**alert, "observables": alert["observables"][:1]})
        if any(
            all(record[name] == alert[name] for name in unique) for record in self.alerts.values()
        ):
            raise ErrorResponse(400, "Alert already exists")
        seen = {
            (observable["dataType"], observable["data"])
            for observable in alert.get("observables", ())
        }
        if len(seen) != len(alert.get("observables", ())):
            raise ErrorResponse(400, "the same observable twice")
        return self.json(self._shown(self._keep(alert)), 201)

    def _keep(self, alert: dict[str, Any]) -> dict[str, Any]:
        name = f"~{self.next_number()}"
        made = {"observables": [], **alert, "_id": name, "status": "New", "comments": []}
        self.alerts[name] = made
        return made

    async def show(self, request: web.Request) -> web.Response:
        return self.json(self._shown(self._home(*request.match_info.values())))

    async def change(self, request: web.Request) -> web.Response:
        alert, change = self._home("alert", request.match_info["id"]), await request.json()
        if change.get("status", "New") not in STAGES:
            raise ErrorResponse(400, "there is no such status")
        alert |= change
        return web.Response(status=204)

    async def observe(self, request: web.Request) -> web.Response:
        home, new = self._home(*request.match_info.values()), await request.json()
        if any(
            (observable["dataType"], observable["data"]) == (new["dataType"], new["data"])
            for observable in home["observables"]
        ):
            raise ErrorResponse(400, "Observable already exists")
        home["observables"].append(new)
        return self.json([new], 201)

    async def comment(self, request: web.Request) -> web.Response:
        self._home(*request.match_info.values())["comments"].append(await request.json())
        return self.json({"_id": f"~{self.next_number()}"}, 201)

    async def query(self, request: web.Request) -> web.Response:
        match (await request.json())["query"]:
            case [
                {"_name": "listAlert"},
                {"_name": "filter", "_field": field, "_value": value},
                {"_name": "page", "from": 0, "to": 500},
            ]:
                found = [
                    self._shown(alert)
                    for alert in self.alerts.values()
                    if alert.get(field) == value
                ]
            case [
                {"_name": "getAlert" | "getCase" as name, "idOrName": identifier},
                {"_name": "observables" | "comments" as part},
                {"_name": "page", "from": 0, "to": 500},
            ]:
                found = self._home(name.removeprefix("get").lower(), identifier)[part]
            case other:
                raise ErrorResponse(400, f"what is {other}?")
        return self.json(found)

    def _home(self, kind: str, identifier: str) -> dict[str, Any]:
        found = (self.cases if kind == "case" else self.alerts).get(identifier)
        if found is None:
            raise ErrorResponse(404, f"{kind} not found")
        return found

    def _shown(self, alert: dict[str, Any]) -> dict[str, Any]:
        hidden = ("observables", "comments")
        shown = {name: value for name, value in alert.items() if name not in hidden}
        return shown | {"stage": STAGES[alert["status"]]}
