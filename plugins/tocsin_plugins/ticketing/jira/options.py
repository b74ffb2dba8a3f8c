"""Options of Jira trackers."""

from __future__ import annotations

from pydantic import Field

from tocsin import ServerUrl, Tracker


class JiraOptions(Tracker.Options):
    """What only Jira can be told."""

    set_priority: bool = Field(
        default=True, description="Set the priority; not where the project has none."
    )
    close_transition: str | None = Field(
        default=None,
        description="The transition that closes an issue, by its name; by default the first "
        "that leads to a status of the category Done.",
    )
    resolution: str | None = Field(
        default=None, description="The resolution that is set on closing, by its name."
    )
    internal_comments: bool = Field(
        default=False, description="Jira Service Management: keep the comments from customers."
    )


class CloudOptions(JiraOptions):
    """What only Jira Cloud can be told."""

    site: ServerUrl | None = Field(
        default=None,
        description="Where people open issues, such as https://acme.atlassian.net, where the "
        "url is that of a token with scopes.",
    )
    paragraph_fields: tuple[str, ...] = Field(
        default=(),
        description="Those of `fields` that hold paragraphs: Jira takes no plain text there.",
    )
