"""What only ServiceNow can be told."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from tocsin import Tracker


class ServiceNowOptions(Tracker.Options):
    """What only ServiceNow can be told."""

    display_values: bool = Field(
        default=False,
        description="Read assignee, fields and priorities as ServiceNow shows them, such as the "
        "name of a group, and not as it stores them.",
    )
    comment_field: Literal["work_notes", "comments"] = Field(
        default="work_notes",
        description="Where comments go: to those who work on the record, or to its caller as well.",
    )
    closed_state: str | None = Field(
        default=None,
        description="The state of a record that is closed, by its value; by default 6 of incidents "
        "and 3 of other tables.",
    )
    close_code: str | None = Field(
        default=None, description="The close code, by its value; most instances want one."
    )
    close_notes: str | None = Field(
        default=None, description="The close notes; by default the reason for closing."
    )
    new_after_close: bool = Field(
        default=False,
        description="Make another record where one is not active any more, for instances that let "
        "nobody add to it.",
    )
