"""Jira Cloud: API version 3, in which texts are documents.

https://developer.atlassian.com/cloud/jira/platform/rest/v3/intro/
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar
from urllib.parse import quote, urlsplit

import orjson

from tocsin import Json, RemoteStatus, Ticket
from tocsin_plugins.ticketing.http_tracker import expect_object, expect_objects
from tocsin_plugins.ticketing.jira.options import JiraCloudOptions
from tocsin_plugins.ticketing.jira.tracker import STATUS_FIELDS, Jira, issue_key, to_status
from tocsin_plugins.ticketing.markup import (
    literal_document,
    node_text,
    parse_document,
    shorten_markdown,
)

LONGEST = 32_767
"""Maximum length of a text field in characters.

The documentation does not say whether the limit applies to the text or to its JSON, so Tocsin
limits the JSON.
"""
_SCOPED = "api.atlassian.com"


class JiraCloud(Jira):
    """Issues of Jira Cloud."""

    Options = JiraCloudOptions
    api = "/rest/api/3"
    status_batch: ClassVar[int] = 100
    options: JiraCloudOptions

    def authorization(self) -> Mapping[str, str]:
        """Return the account's address and its API token."""
        secret = f"{self.settings.username or ''}:{self.settings.secret.get_secret_value()}"
        return {"Authorization": f"Basic {b64encode(secret.encode()).decode()}"}

    async def search(self, jql: str, fields: str) -> list[dict[str, Any]]:
        """Return the first issues that match a query."""
        query = {"jql": jql, "fields": fields, "maxResults": 10}
        return expect_objects(await self.ask("GET", "/search/jql", query=query), "issues")

    async def read_statuses(self, identifiers: Sequence[str]) -> Mapping[str, RemoteStatus]:
        """Return the statuses of issues, with one request for all issues that were not moved.

        The response omits unknown issues and contains moved issues under their new keys.
        """
        asked: dict[str, Json] = {
            "issueIdsOrKeys": [*identifiers],
            "fields": STATUS_FIELDS.split(","),
        }
        answer = await self.ask("POST", "/issue/bulkfetch", json=asked)
        issues = expect_objects(answer, "issues")
        found = {issue_key(issue): to_status(expect_object(issue, "fields")) for issue in issues}
        others = [identifier for identifier in identifiers if identifier not in found]
        known = {identifier: found[identifier] for identifier in identifiers if identifier in found}
        return {**known, **await super().read_statuses(others)}

    def comment_body(self, markdown: str) -> Json:
        """Return a document."""
        return parse_document(
            shorten_markdown(markdown, lambda it: len(orjson.dumps(parse_document(it))) <= LONGEST)
        )

    def comment_text(self, body: Json) -> str:
        """Return the text of a document."""
        return node_text(body)

    def user(self, name: str) -> dict[str, str]:
        """Return an account by ID; names are no longer supported."""
        return {"accountId": name}

    def search_query(self, name: str) -> dict[str, str]:
        """Return an account by ID."""
        return {"accountId": name}

    def settings_problems(self) -> Iterator[str]:
        """Yield problems with the settings."""
        if not self.settings.username:
            yield "username: set the email address of the account that owns the API token"
        if urlsplit(self.settings.url).hostname == _SCOPED and self.options.site is None:
            yield "options.site: set the URL of the site, such as https://acme.atlassian.net"
        for name in self.options.paragraph_fields:
            if name not in self.settings.fields:
                yield f"options.paragraph_fields: {name} is not in `fields`"

    def fields(self, ticket: Ticket) -> dict[str, Json]:
        """Return the operator's fields; paragraph fields as documents."""
        paragraphs = self.options.paragraph_fields
        return {
            name: literal_document(value)
            if name in paragraphs and isinstance(value, str)
            else value
            for name, value in ticket.fields.items()
        }

    def link(self, identifier: str) -> str:
        """Return the URL of an issue's page."""
        site = self.options.site or self.settings.url
        return f"{site}/browse/{quote(identifier, safe='')}"
