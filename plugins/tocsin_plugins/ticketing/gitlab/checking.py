"""What keeps a project of GitLab from taking issues."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tocsin import TicketSettings

_PLANNER = 15  # the first role that may label: https://docs.gitlab.com/user/permissions/


def find_problems(
    project: Mapping[str, Any], settings: TicketSettings, *, is_assignable: bool
) -> Iterator[str]:
    """Yield what is wrong with a project, or with what the token may do there."""
    name, path = settings.project, str(project.get("path_with_namespace"))
    if path.lower() != name.lower():
        yield f"project: name it by its path, {path}"
    if project.get("issues_access_level") == "disabled":
        yield f"{name} has its issues turned off"
    if project.get("archived"):
        yield f"{name} is archived"
    if _highest_role(project) < _PLANNER:
        yield f"the token may not label issues of {name}: it needs the role Planner or Reporter"
    if not is_assignable:
        yield f"assignee: {settings.assignee} is no member of {name}"
    if any("," in it for it in (*settings.labels, *settings.priorities.values())):
        yield "labels, priorities: GitLab takes no comma in a label"


def _highest_role(project: Mapping[str, Any]) -> int:
    """Return the highest role that the token has, by its number; 0 where it is no member."""
    given = project.get("permissions") or {}
    found = [given.get("project_access"), given.get("group_access")]
    return max((it.get("access_level", 0) for it in found if isinstance(it, dict)), default=0)
