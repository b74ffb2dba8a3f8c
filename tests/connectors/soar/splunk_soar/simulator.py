"""Simulator of Splunk SOAR: the part of its API that the channel uses, with its quirks."""

from __future__ import annotations

import json
from typing import Any, ClassVar

from aiohttp import web

from tocsin.testing import ReceiverSimulator, RemoteObject

TOKEN = "an automation user's token"
_PAGE = 10
_DATA = ("container", "artifact", "note", "container_comment")


class SplunkSoarSimulator(ReceiverSimulator):
    """The token cannot read or write the paths in `lacks`."""

    permissions: ClassVar = (
        "/rest/container",
        "/rest/artifact",
        "/rest/note",
        "/rest/container_comment",
        "/rest/container_options",
    )

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.labels = ["events", "tocsin"]
        self.severities = ["low", "medium", "high"]
        self.refuses_with = 400
        """The response status for a repeated identifier; some versions return 200."""
        self.refuses_artifacts = False
        """Whether it rejects a second artifact with the same identifier; 8.5 does not."""
        self.runs: list[int] = []
        """The containers on which playbooks ran, in order."""
        self.records: dict[str, list[dict[str, Any]]] = {kind: [] for kind in _DATA}

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/rest/container_options", self.options),
            web.get("/rest/{kind}", self.query),
            web.post("/rest/container", self.create),
            web.post("/rest/container/{id}", self.change),
            web.post("/rest/artifact", self.attach),
            web.post("/rest/note", self.note),
            web.post("/rest/container_comment", self.comment),
        ]

    def is_signed(self, request: web.Request) -> bool:
        return request.headers.get("ph-auth-token") == TOKEN

    def objects(self) -> list[RemoteObject]:
        return [
            RemoteObject(
                id=str(record["id"]),
                observables=[
                    value
                    for artifact in self.of("artifact", record["id"])
                    if artifact["label"] == "entity"
                    for value in artifact["cef"].values()
                ],
                notes=[
                    *(note["content"] for note in self.of("note", record["id"])),
                    *(said["comment"] for said in self.of("container_comment", record["id"])),
                ],
                is_open=record["close_time"] is None,
            )
            for record in self.records["container"]
        ]

    def of(self, kind: str, container: int) -> list[dict[str, Any]]:
        """Return the artifacts, notes or comments of a container."""
        return [record for record in self.records[kind] if record["container_id"] == container]

    def remove(self, identifier: str) -> None:
        number = int(identifier)
        for kind, rows in self.records.items():
            owner = "id" if kind == "container" else "container_id"
            rows[:] = [row for row in rows if row[owner] != number]

    def resolve(self, identifier: str, status: str) -> None:
        """Give a container a status of the type Resolved, as an analyst does."""
        container = self._container(int(identifier))
        assert container is not None
        container |= {"status": status, "close_time": self.clock.now().isoformat()}

    async def options(self, request: web.Request) -> web.Response:
        if request.path in self.lacks:
            return self._failed("You do not have permission", 403)
        severities = [
            {"name": severity, "is_default": severity == "medium"} for severity in self.severities
        ]
        return self.json({"label": self.labels, "severity": severities})

    async def query(self, request: web.Request) -> web.Response:
        if request.path in self.lacks:
            return self._failed("You do not have permission", 403)
        asked = dict(request.query)
        page, size = int(asked.pop("page", 0)), int(asked.pop("page_size", _PAGE))
        assert asked.pop("sort", "id") == "id"
        rows = self.records[request.match_info["kind"]]
        for name, text in asked.items():
            field, _, lookup = name.removeprefix("_filter_").partition("__")
            wanted = json.loads(text)  # a word without quotes is an error there, too
            rows = [row for row in rows if _passes(row.get(field), lookup, wanted)]
        pages = -(-len(rows) // size)
        found = rows[page * size : (page + 1) * size]
        return self.json({"count": len(rows), "num_pages": pages, "data": found})

    async def create(self, request: web.Request) -> web.Response:
        body = await request.json()
        if not body.get("name") or body.get("label") not in self.labels:
            return self._failed("a container needs a name and a label that exists")
        if body.get("severity", "medium") not in self.severities:
            return self._failed("there is no such severity")
        for record in self.records["container"]:
            if record["source_data_identifier"] == body["source_data_identifier"]:
                known = {"existing_container_id": record["id"]}
                return self._failed("duplicate with source_data_identifier", None, **known)
        artifacts = body.pop("artifacts", [])
        number = self._keep("container", {**body, "status": "new", "close_time": None})
        made = [
            self._keep("artifact", {**artifact, "container_id": number}) for artifact in artifacts
        ]
        if body.get("run_automation", bool(made)):
            self.runs.append(number)
        return self.json({"success": True, "id": number, "new_artifact_ids": made})

    async def change(self, request: web.Request) -> web.Response:
        container = self._container(int(request.match_info["id"]))
        match container, await request.json():
            case dict(), {"status": "closed"}:
                container |= {"status": "closed", "close_time": self.clock.now().isoformat()}
                return self.json({"success": True, "id": container["id"]})
        return self._failed("no such container or status")

    async def attach(self, request: web.Request) -> web.Response:
        body = await request.json()
        if self._container(body["container_id"]) is None:
            return self._failed("no such container")
        for record in self.of("artifact", body["container_id"]) if self.refuses_artifacts else ():
            if record["source_data_identifier"] == body["source_data_identifier"]:
                known = {"existing_artifact_id": record["id"]}
                return self._failed("artifact already exists", None, **known)
        if body.get("run_automation", True):
            self.runs.append(body["container_id"])
        return self.json({"success": True, "id": self._keep("artifact", body)})

    async def note(self, request: web.Request) -> web.Response:
        return self._say("note", await request.json(), "title", "content", "note_type")

    async def comment(self, request: web.Request) -> web.Response:
        return self._say("container_comment", await request.json(), "comment")

    def _say(self, kind: str, body: dict[str, Any], *required: str) -> web.Response:
        if self._container(body["container_id"]) is None or not all(map(body.get, required)):
            return self._failed(f"a {kind} needs a container and {', '.join(required)}")
        return self.json({"success": True, "id": self._keep(kind, body)})

    def _keep(self, kind: str, record: dict[str, Any]) -> int:
        number = self.next_number()
        self.records[kind].append({**record, "id": number})
        return number

    def _container(self, number: int) -> dict[str, Any] | None:
        return next(
            (record for record in self.records["container"] if record["id"] == number), None
        )

    def _failed(self, message: str, status: int | None = 400, **known: int) -> web.Response:
        answer = {"failed": True, "message": message, **known}
        return self.json(answer, self.refuses_with if status is None else status)


def _passes(value: Any, lookup: str, wanted: Any) -> bool:
    return str(value).startswith(wanted) if lookup == "startswith" else bool(value == wanted)
