"""Options for the Jira trackers."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from tocsin import IncidentDisposition, PluginSettings, ServerUrl, Tracker


class JiraClosure(PluginSettings):
    """Transition and resolution that Tocsin uses to close an issue."""

    transition: str | None = Field(
        default=None, description="Name of the transition. By default, this is `close_transition`."
    )
    resolution: str | None = Field(
        default=None, description="Name of the resolution. By default, this is `resolution`."
    )


class JiraOptions(Tracker.Options):
    """Options for both Jira editions."""

    set_priority: bool = Field(
        default=True,
        description="Whether Tocsin sets the priority. Use `false` if the project does not have "
        "priorities.",
    )
    close_transition: str | None = Field(
        default=None,
        description="Name of the transition that closes an issue. By default, Tocsin uses the "
        "first transition that leads to a status in the category Done.",
    )
    resolution: str | None = Field(
        default=None, description="Name of the resolution that closed issues get."
    )
    close_as: Mapping[IncidentDisposition, JiraClosure] = Field(
        default={},
        description="Overrides `close_transition`, `resolution` or both for incidents with certain "
        "dispositions, for example "
        '`{ "false-positive" = { transition = "Reject", resolution = "Won\'t Do" } }`.',
    )
    internal_comments: bool = Field(
        default=False, description="Whether Jira Service Management hides comments from customers."
    )

    def select_closure(self, disposition: IncidentDisposition | None) -> JiraClosure:
        """Return how to close the issue of an incident with this disposition."""
        usual = JiraClosure(transition=self.close_transition, resolution=self.resolution)
        if disposition is None or disposition not in self.close_as:
            return usual
        return usual.model_copy(update=self.close_as[disposition].model_dump(exclude_none=True))

    @property
    def resolutions(self) -> Mapping[str, str]:
        """The resolutions that closed issues can get, by option name."""
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
    """Options for Jira Cloud."""

    site: ServerUrl | None = Field(
        default=None,
        description="The site's URL, such as https://acme.atlassian.net. Required if the token has "
        "scopes.",
    )
    paragraph_fields: tuple[str, ...] = Field(
        default=(),
        description="Which of the names in `fields` are paragraph fields. Tocsin converts their "
        "values, because paragraph fields do not accept plain text.",
    )
