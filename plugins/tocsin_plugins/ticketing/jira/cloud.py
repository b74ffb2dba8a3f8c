"""Jira Cloud: API version 3, with documents as texts."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, urlsplit

import orjson

from tocsin import Json, Ticket
from tocsin_plugins.ticketing.http_tracker import expect_objects
from tocsin_plugins.ticketing.jira.options import CloudOptions
from tocsin_plugins.ticketing.jira.tracker import Jira
from tocsin_plugins.ticketing.markup import (
    literal_document,
    node_text,
    parse_document,
    shorten_markdown,
)

LONGEST = 32_767
"""Characters of a text field; whether those of its JSON count is not documented, so they do."""
_SCOPED = "api.atlassian.com"


class JiraCloud(Jira):
    """Issues of Jira Cloud."""

    Options = CloudOptions
    api = "/rest/api/3"
    options: CloudOptions

    def authorization(self) -> Mapping[str, str]:
        """Return the address of the account and its API token."""
        secret = f"{self.settings.username or ''}:{self.settings.secret.get_secret_value()}"
        return {"Authorization": f"Basic {b64encode(secret.encode()).decode()}"}

    async def search(self, jql: str, fields: str) -> list[dict[str, Any]]:
        """Return the first issues that a query finds."""
        query = {"jql": jql, "fields": fields, "maxResults": 10}
        return expect_objects(await self.ask("GET", "/search/jql", query=query), "issues")

    def rich(self, markdown: str) -> Json:
        """Return a document."""
        return parse_document(
            shorten_markdown(markdown, lambda it: len(orjson.dumps(parse_document(it))) <= LONGEST)
        )

    def said(self, body: Json) -> str:
        """Return the text of a document."""
        return node_text(body)

    def user(self, name: str) -> dict[str, str]:
        """Return an account by its id; names are no longer taken."""
        return {"accountId": name}

    def search_query(self, name: str) -> dict[str, str]:
        """Return an account by its id."""
        return {"accountId": name}

    def cloud_problems(self) -> Iterator[str]:
        """Yield what is wrong with the settings."""
        if not self.settings.username:
            yield "username: give the e-mail address of the account that the API token is of"
        if urlsplit(self.settings.url).hostname == _SCOPED and self.options.site is None:
            yield "options.site: say where people open issues, such as https://acme.atlassian.net"
        for name in self.options.paragraph_fields:
            if name not in self.settings.fields:
                yield f"options.paragraph_fields: {name} is none of `fields`"

    def fields(self, ticket: Ticket) -> dict[str, Json]:
        """Return the operator's fields, those that hold paragraphs as documents."""
        paragraphs = self.options.paragraph_fields
        return {
            name: literal_document(value)
            if name in paragraphs and isinstance(value, str)
            else value
            for name, value in ticket.fields.items()
        }

    def link(self, identifier: str) -> str:
        """Return the page of an issue."""
        site = self.options.site or self.settings.url
        return f"{site}/browse/{quote(identifier, safe='')}"
