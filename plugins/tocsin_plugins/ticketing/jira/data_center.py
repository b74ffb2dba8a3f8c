"""Jira Data Center: API version 2, in which texts are wiki markup.

https://developer.atlassian.com/server/jira/platform/rest/
"""

from __future__ import annotations

from collections.abc import Mapping
from html import unescape
from typing import Any

from tocsin import Json
from tocsin_plugins.ticketing.http_tracker import expect_objects
from tocsin_plugins.ticketing.jira.tracker import Jira
from tocsin_plugins.ticketing.markup import parse_document, render_wiki, shorten_markdown

LONGEST = 32_767
"""Maximum length of a text field in characters, unless an administrator changed it."""


class JiraDataCenter(Jira):
    """Issues of Jira Data Center."""

    api = "/rest/api/2"
    part = "wiki"

    def authorization(self) -> Mapping[str, str]:
        """Return the personal access token."""
        return {"Authorization": f"Bearer {self.settings.secret.get_secret_value()}"}

    async def search(self, jql: str, fields: str) -> list[dict[str, Any]]:
        """Return the first issues that match a query."""
        query = {"jql": jql, "fields": fields, "maxResults": 10}
        return expect_objects(await self.ask("GET", "/search", query=query), "issues")

    def comment_body(self, markdown: str) -> Json:
        """Return wiki markup."""
        return render_wiki(
            parse_document(
                shorten_markdown(
                    markdown, lambda it: len(render_wiki(parse_document(it))) <= LONGEST
                )
            )
        )

    def comment_text(self, body: Json) -> str:
        """Return the comment without the escapes of wiki markup."""
        return unescape(str(body))

    def user(self, name: str) -> dict[str, str]:
        """Return a user by name."""
        return {"name": name}

    def search_query(self, name: str) -> dict[str, str]:
        """Return a user by name."""
        return {"username": name}
