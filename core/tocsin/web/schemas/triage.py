"""Schemas of triage: changes to incidents, comments, history."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, ClassVar, Self

from pydantic import ConfigDict, Field, StringConstraints, model_validator

from tocsin.fields import NOT_BLANK, WholeNumber, any_case
from tocsin.incidents import MAX_LABELS
from tocsin.model import DispositionSource, IncidentDisposition, Json, Vocabulary
from tocsin.web.parsing import BodyModel, QueryModel, ResponseModel
from tocsin.web.schemas.examples import COMMENT_ID, CREATED, URL
from tocsin.web.schemas.fields import Limit, Name, Text, TotalRelation, cursor_field

COMMENTS = "m"
"""The list of comments, in its cursors."""
MAX_COMMENT = 5_000

Tag = Annotated[
    str,
    StringConstraints(
        strip_whitespace=True,
        to_lower=True,
        min_length=1,
        max_length=60,
        pattern=r"^[^\x00-\x1f\x7f]+$",
    ),
]
IncidentNumber = Annotated[int, Field(ge=1, le=10**18 - 1), WholeNumber]
_DISPOSITION = any_case(IncidentDisposition)
_SOURCE = any_case(DispositionSource)


class TriageItem(ResponseModel):
    """Triage of an incident."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "assignee": "ana",
        "acknowledged_by": "ana",
        "acknowledged_at": CREATED,
        "disposition": "false-positive",
        "disposition_reason": "Penetration test, announced until Friday",
        "disposition_source": "person",
        "disposition_by": "ana",
        "disposition_at": CREATED,
        "comment_count": 1,
        "tags": ["pentest"],
        "linked_incidents": [4698],
        "watchers": [],
    }

    assignee: str | None
    acknowledged_by: str | None
    acknowledged_at: datetime | None
    disposition: IncidentDisposition | None
    disposition_reason: str | None
    disposition_source: DispositionSource | None = Field(description="Origin of the disposition.")
    disposition_by: str | None = Field(description="User or credential that set the disposition.")
    disposition_at: datetime | None
    comment_count: int
    tags: list[str]
    linked_incidents: list[int] = Field(description="Numbers of the linked incidents.")
    watchers: list[str]


class TriageChange(BodyModel):
    """Changes to an incident's triage. Omitted members do not change."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "assignee": "ana",
        "disposition": "false-positive",
        "disposition_reason": "Penetration test, announced until Friday",
        "add_tags": ["pentest"],
    }

    assignee: Name | None = Field(
        default=None, description="Name of the assignee; null for nobody."
    )
    acknowledged: bool | None = Field(
        default=None,
        description="true acknowledges the incident in the caller's name; false removes the "
        "acknowledgement.",
    )
    disposition: Annotated[IncidentDisposition, _DISPOSITION] | None = Field(
        default=None,
        description="Result of the triage, case-insensitive; null removes the disposition and "
        "its reason.",
    )
    disposition_reason: Text | None = Field(
        default=None, description="Reason for the disposition; null removes it."
    )
    disposition_source: Annotated[DispositionSource, _SOURCE] | None = Field(
        default=None,
        description="Origin of the disposition, case-insensitive. Default: `playbook` for API "
        "keys and clients, `person` in the console.",
    )
    add_tags: list[Tag] = Field(
        default=[], max_length=MAX_LABELS, description="Tags to add, stored in lower case."
    )
    remove_tags: list[Tag] = Field(default=[], max_length=MAX_LABELS, description="Tags to remove.")
    add_links: list[IncidentNumber] = Field(
        default=[], max_length=MAX_LABELS, description="Incidents to link, in both directions."
    )
    remove_links: list[IncidentNumber] = Field(
        default=[], max_length=MAX_LABELS, description="Incidents to unlink."
    )
    add_watchers: list[Name] = Field(
        default=[], max_length=MAX_LABELS, description="Watchers to add."
    )
    remove_watchers: list[Name] = Field(
        default=[], max_length=MAX_LABELS, description="Watchers to remove."
    )

    @model_validator(mode="after")
    def _not_nothing(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("provide at least one member")
        return self


class TriagedIncident(ResponseModel):
    """An incident's triage after a change."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "number": 4711,
        "triage": TriageItem.EXAMPLE,
        "url": f"{URL}/incidents/4711",
    }

    number: int
    triage: TriageItem | None
    url: str = Field(description="URL of the page in the console.")


MAX_TRIAGED = 100
"""The number of incidents that one request changes."""


class BulkTriageChange(BodyModel):
    """One triage change for several incidents."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "numbers": [4711, 4712],
        "change": {"disposition": "duplicate"},
    }

    numbers: list[IncidentNumber] = Field(
        min_length=1, max_length=MAX_TRIAGED, description="Numbers of the incidents."
    )
    change: TriageChange


class TriageOutcome(Vocabulary):
    """Result of a change to one of several incidents."""

    UPDATED = "updated"
    UNCHANGED = "unchanged"
    REFUSED = "refused"
    NOT_FOUND = "not-found"


class TriageResult(ResponseModel):
    """Result of the change for one incident."""

    EXAMPLE: ClassVar[dict[str, Json]] = {"number": 4711, "outcome": "updated"}

    number: int
    outcome: TriageOutcome = Field(
        description="`unchanged`: the incident already had these values. `refused` and "
        "`not-found`: Tocsin did not change this incident."
    )
    detail: str | None = Field(description="Why the change was refused.")


class TriageResults(ResponseModel):
    """Result of a change to several incidents."""

    EXAMPLE: ClassVar[dict[str, Json]] = {}

    results: list[TriageResult] = Field(
        description="One result for each number, in the order of `numbers`."
    )


class NewComment(BodyModel):
    """A new comment."""

    EXAMPLE: ClassVar[dict[str, Json]] = {"text": "Asked the network team; they expect the scan."}

    text: Annotated[
        str,
        StringConstraints(
            strip_whitespace=True, min_length=1, max_length=MAX_COMMENT, pattern=NOT_BLANK
        ),
    ] = Field(description="Text of the comment.")


class CommentItem(ResponseModel):
    """A comment on an incident."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "id": COMMENT_ID,
        "text": "Asked the network team; they expect the scan.",
        "created_by": "ana",
    }

    id: str
    text: str
    created_by: str
    created_at: datetime


class CommentQuery(QueryModel):
    """Page of comments."""

    limit: Limit = 50
    cursor: cursor_field(COMMENTS) | None = None  # type: ignore[valid-type]


class CommentList(ResponseModel):
    """One page of comments."""

    EXAMPLE: ClassVar[dict[str, Json]] = {}

    comments: list[CommentItem]
    total: int
    total_relation: TotalRelation
    next_cursor: str | None = Field(description="Next `cursor`; null on the last page.")


class ChangedMember(ResponseModel):
    """One changed member of an incident's triage."""

    EXAMPLE: ClassVar[dict[str, Json]] = {"name": "assignee", "from": None, "to": "ana"}

    name: str = Field(description="Name of the member, or `comments` for a new comment.")
    from_: str | list[str] | list[int] | None = Field(alias="from")
    to: str | list[str] | list[int] | None = Field(description="New value; for a comment, its ID.")


class TracedTriage(ResponseModel):
    """One change to an incident's triage."""

    EXAMPLE: ClassVar[dict[str, Json]] = {"by": "ana", "actor": "admin:ana"}

    at: datetime
    by: str
    actor: str = Field(description="The user or credential, as in the audit log.")
    members: list[ChangedMember]
