"""Options of Jira trackers."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from tocsin import IncidentDisposition, PluginSettings, ServerUrl, Tracker


class JiraClosure(PluginSettings):
    """Transition and resolution of closed issues."""

    transition: str | None = Field(
        default=None, description="Name of the transition; by default, `close_transition`."
    )
    resolution: str | None = Field(
        default=None, description="Name of the resolution; by default, `resolution`."
    )


class JiraOptions(Tracker.Options):
    """Options of Jira."""

    set_priority: bool = Field(
        default=True,
        description="Set the priority. Disable this option for projects without priorities.",
    )
    close_transition: str | None = Field(
        default=None,
        description="Name of the transition that closes an issue; by default, the first one that "
        "leads to a status in the category Done.",
    )
    resolution: str | None = Field(
        default=None, description="Name of the resolution of closed issues."
    )
    close_as: Mapping[IncidentDisposition, JiraClosure] = Field(
        default={},
        description="Transition and resolution by the disposition of the incident, such as "
        '`{ "false-positive" = { transition = "Reject", resolution = "Won\'t Do" } }`.',
    )
    internal_comments: bool = Field(
        default=False, description="Jira Service Management: hide comments from customers."
    )

    def select_closure(self, disposition: IncidentDisposition | None) -> JiraClosure:
        """Return how to close the issue of an incident with this disposition."""
        usual = JiraClosure(transition=self.close_transition, resolution=self.resolution)
        if disposition is None or disposition not in self.close_as:
            return usual
        return usual.model_copy(update=self.close_as[disposition].model_dump(exclude_none=True))

    @property
    def resolutions(self) -> Mapping[str, str]:
        """The resolutions of closed issues, by the name of their option."""
        named = {
            f"options.close_as.{disposition}": closure.resolution
            for disposition, closure in self.close_as.items()
        }
        return {
            option: resolution
            for option, resolution in {"options.resolution": self.resolution, **named}.items()
            if resolution
        }


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
