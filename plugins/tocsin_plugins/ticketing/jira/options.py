"""Options of Jira trackers."""

from __future__ import annotations

from pydantic import Field

from tocsin import ServerUrl, Tracker


class JiraOptions(Tracker.Options):
    """Options of Jira."""

    set_priority: bool = Field(
        default=True, description="Set the priority. Disable it for projects without priorities."
    )
    close_transition: str | None = Field(
        default=None,
        description="Name of the transition that closes an issue; by default, the first one that "
        "leads to a status in the category Done.",
    )
    resolution: str | None = Field(
        default=None, description="Name of the resolution of closed issues."
    )
    internal_comments: bool = Field(
        default=False, description="Jira Service Management: hide comments from customers."
    )


class JiraCloudOptions(JiraOptions):
    """Options of Jira Cloud."""

    site: ServerUrl | None = Field(
        default=None,
        description="URL of the site, such as https://acme.atlassian.net; required if the "
        "token has scopes.",
    )
    paragraph_fields: tuple[str, ...] = Field(
        default=(),
        description="Paragraph fields among `fields`, which do not accept plain text.",
    )
