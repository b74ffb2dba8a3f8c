"""Channel `splunk-soar`: https://help.splunk.com/en/splunk-soar/soar-cloud/rest-api-reference."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import orjson
from pydantic import Field, SecretStr

from tocsin import Broken, CaseChannel, CredentialsRefused, Health, Json, Observable, Refused
from tocsin_connectors.soar.splunk_soar.artifacts import ENTITY_LABEL, ID_PREFIX, build_artifact

_REQUIRED_SEVERITIES = ("low", "medium", "high")
_REQUIRED_SENSITIVITIES = ("white", "green", "amber", "red")


def find_missing_options(options: Json, label: str) -> Iterator[str]:
    """Yield the missing label, severities and sensitivities in `/rest/container_options`.

    An empty list means that the token cannot see the options.
    """
    labels, severities = _list_names(options, "label"), _list_names(options, "severity")
    if labels and label.lower() not in labels:
        yield f"the label {label} does not exist; existing labels: {', '.join(sorted(labels))}"
    for severity in _REQUIRED_SEVERITIES:
        if severities and severity not in severities:
            yield f"the severity {severity} does not exist"
    sensitivities = _list_names(options, "sensitivity")
    for sensitivity in _REQUIRED_SENSITIVITIES:
        if sensitivities and sensitivity not in sensitivities:
            yield f"the sensitivity {sensitivity} does not exist"


def _list_names(options: Json, kind: str) -> set[str]:
    """Return the names of a kind in lowercase, listed as strings or as objects."""
    listed = options.get(kind) if isinstance(options, dict) else None
    members = listed if isinstance(listed, list) else []
    names = [member.get("name") if isinstance(member, dict) else member for member in members]
    return {name.lower() for name in names if isinstance(name, str)}


_CONTAINERS = "/rest/container"
_ARTIFACTS = "/rest/artifact"
_NOTES = "/rest/note"
_COMMENTS = "/rest/container_comment"
_OPTIONS = "/rest/container_options"
_READ = (_CONTAINERS, _ARTIFACTS, _NOTES, _COMMENTS, _OPTIONS)
_PAGE_SIZE = 500
_MAX_PAGES = 20
_MAX_MESSAGE_LENGTH = 1_000
_CLOSED = "closed"
_CONTAINER = re.compile(rb'"existing_container_id": ?(\d+)')
_ARTIFACT = re.compile(rb'"existing_artifact_id": ?\d+')


class SplunkSoarSettings(CaseChannel.Settings):
    """Settings of a `splunk-soar` destination."""

    template: str = Field(
        default="splunk-soar", description="Receiver whose templates render the event."
    )
    token: SecretStr = Field(description="`ph-auth-token` of an automation user.")
    label: str = Field(
        default="events",
        min_length=1,
        max_length=100,
        description="Label that new events get. It must exist in Splunk SOAR.",
    )
    run_automation: bool = Field(
        default=True,
        description="Whether Splunk SOAR runs active playbooks on events from Tocsin.",
    )


class SplunkSoar(CaseChannel[SplunkSoarSettings]):
    """Creates containers, which analysts see as events."""

    def authorization(self) -> Mapping[str, str]:
        """Return the token header."""
        return {"ph-auth-token": self.settings.token.get_secret_value()}

    async def ask(self, method: str, path: str, **options: Any) -> Json:
        """Return the response; raises `Refused` if it contains `failed`, whatever its status."""
        answer = await super().ask(method, path, **options)
        match answer:
            case {"failed": True}:
                message = f"{method} {path} failed: {answer.get('message')}"
                response = orjson.dumps(answer)[:_MAX_MESSAGE_LENGTH]
                raise Refused(
                    message[:_MAX_MESSAGE_LENGTH], status=HTTPStatus.OK, response=response
                )
        return answer

    async def check(self) -> Health:
        """Report paths that the token cannot read, and missing labels and severities.

        Only writing could test write permissions.
        """
        answers, problems = dict[str, Json](), list[str]()
        for path in _READ:
            try:
                answers[path] = await self.ask("GET", path, query={"page_size": 1})
            except CredentialsRefused as refused:
                if refused.status == HTTPStatus.UNAUTHORIZED and path == _CONTAINERS:
                    raise
                problems.append(f"the token cannot read {path}")
        label = self.settings.label
        problems += find_missing_options(answers.get(_OPTIONS), label)
        return Health(
            detail=f"Splunk SOAR responds and has the label {label}; to check that Tocsin can "
            "create events, run `tocsin destinations test`",
            problems=tuple(problems),
        )

    async def find(self, key: str) -> str | None:
        """Return the container with this identifier, or None."""
        found = await self._rows(_CONTAINERS, _filter_source_data_identifier=f'"{key}"')
        known = (record for record in found if record.get("source_data_identifier") == key)
        return next(map(_get_id, known), None)

    async def create(
        self, key: str, body: dict[str, Any], observables: Sequence[Observable]
    ) -> tuple[str, bool]:
        """Create a container with its artifacts, or return the existing one."""
        container = {**body, "label": self.settings.label, "source_data_identifier": key}
        others = [
            artifact
            for artifact in body.get("artifacts", ())
            if artifact.get("label") != ENTITY_LABEL
        ]
        container["artifacts"] = [*others, *map(build_artifact, observables)]
        if not self.settings.run_automation:  # otherwise it runs after the last artifact
            container["run_automation"] = False
            for artifact in container["artifacts"]:
                artifact["run_automation"] = False
        try:
            return _get_id(await self.ask("POST", _CONTAINERS, json=container)), True
        except Refused as refused:
            if found := await self._find_existing(refused, key):
                return found, False
            raise

    async def is_open(self, identifier: str) -> bool | None:
        """Return whether the container is neither closed nor resolved."""
        found = await self._rows(_CONTAINERS, _filter_id=identifier)
        if not found:
            return None
        return not found[0].get("close_time") and found[0].get("status") != _CLOSED

    async def add_observables(self, identifier: str, observables: Sequence[Observable]) -> int:
        """Add missing artifacts; playbooks run after the last one.

        Splunk SOAR accepts several artifacts with the same identifier.
        """
        wanted = [build_artifact(observable) for observable in observables]
        filters = {"_filter_source_data_identifier__startswith": f'"{ID_PREFIX}"'}
        existing = await self._list_related(_ARTIFACTS, identifier, **filters) if wanted else []
        known = {record.get("source_data_identifier") for record in existing}
        lacking = [
            artifact for artifact in wanted if artifact["source_data_identifier"] not in known
        ]
        for left, artifact in zip(reversed(range(len(lacking))), lacking, strict=True):
            runs = self.settings.run_automation and not left
            await self._add_artifact({**artifact, "run_automation": runs}, identifier)
        return len(lacking)

    async def list_notes(self, identifier: str) -> Sequence[str]:
        """Return the container's notes."""
        return [
            str(record.get("content")) for record in await self._list_related(_NOTES, identifier)
        ]

    async def add_note(self, identifier: str, title: str, text: str) -> None:
        """Add a general note."""
        note = {"title": title, "content": text, "note_type": "general", "note_format": "markdown"}
        await self.ask("POST", _NOTES, json={"container_id": int(identifier), **note})

    async def close(self, identifier: str, reason: str) -> None:
        """Close the container, then comment with the reason."""
        await self.ask("POST", f"{_CONTAINERS}/{quote(identifier)}", json={"status": _CLOSED})
        await self.explain_closed(identifier, reason)

    async def explain_closed(self, identifier: str, reason: str) -> None:
        """Comment with the reason, unless a comment already gives it."""
        comments = await self._list_related(_COMMENTS, identifier)
        if not any(comment.get("comment") == reason for comment in comments):
            comment: Json = {"container_id": int(identifier), "comment": reason}
            await self.ask("POST", _COMMENTS, json=comment)

    def link(self, identifier: str) -> str:
        """Return the URL of the event."""
        return f"{self.settings.url}/mission/{quote(identifier)}"

    async def _find_existing(self, refused: Refused, key: str) -> str | None:
        """Return the existing container with the same identifier that an error response names."""
        if isinstance(refused, CredentialsRefused):
            return None
        if pointer := _CONTAINER.search(refused.response):
            return pointer[1].decode()
        return await self.find(key)  # long responses are truncated

    async def _add_artifact(self, artifact: dict[str, Any], identifier: str) -> None:
        try:
            content: Json = {"container_id": int(identifier), **artifact}
            await self.ask("POST", _ARTIFACTS, json=content)
        except Refused as refused:
            if not _ARTIFACT.search(refused.response):
                raise

    async def _list_related(
        self, path: str, identifier: str, **filters: str
    ) -> list[dict[str, Any]]:
        return await self._rows(path, _filter_container_id=identifier, **filters)

    async def _rows(self, path: str, **filters: str) -> list[dict[str, Any]]:
        """Return the records that match the filters, 10,000 at most."""
        rows = list[dict[str, Any]]()
        for page in range(_MAX_PAGES):
            query = {**filters, "page": page, "page_size": _PAGE_SIZE, "sort": "id"}
            match await self.ask("GET", path, query=query):
                case {"data": [*found], "num_pages": int(pages)}:
                    rows += [row for row in found if isinstance(row, dict)]
                case _:
                    raise Broken(f"GET {path} returned a response without `data` and `num_pages`")
            if page + 1 >= pages:
                break
        return rows


def _get_id(record: Json) -> str:
    match record:
        case {"id": int(identifier)}:
            return str(identifier)
    raise Broken("Splunk SOAR returned a response without an ID")
