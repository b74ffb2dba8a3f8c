"""Schemas of people who sign in with passkeys."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, ClassVar, Self

from pydantic import ConfigDict, Field, StringConstraints, model_validator

from tocsin.credentials import ConsoleRole, PersonStatus
from tocsin.fields import WholeNumber, any_case
from tocsin.model import Json
from tocsin.web.parsing import BodyModel, QueryModel, ResponseModel
from tocsin.web.schemas.examples import CREATED, FINISHED, PASSKEY_ID, URL
from tocsin.web.schemas.fields import Limit, cursor_field

LIST = "p"

_Role = Annotated[ConsoleRole, any_case(ConsoleRole)]
_Hours = Annotated[int, Field(ge=1, le=168), WholeNumber]
_LINK = f"{URL}/sign-in/new-passkey#{'x' * 43}"


class NewPerson(BodyModel):
    """A new person."""

    EXAMPLE: ClassVar[dict[str, Json]] = {"name": "ana", "role": "analyst", "expires_in_hours": 24}

    name: Annotated[
        # lowercase, so that two names cannot look alike
        str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._@-]*$", max_length=100)
    ] = Field(description="User name in lower case, such as `ana` or `ana@example.org`.")
    role: _Role
    expires_in_hours: _Hours = Field(default=24, description="How many hours the link is valid.")


class NewPasskeyLink(BodyModel):
    """A new link for a person."""

    EXAMPLE: ClassVar[dict[str, Json]] = {"expires_in_hours": 24}

    expires_in_hours: _Hours = Field(default=24, description="How many hours the link is valid.")


class PasskeyLink(ResponseModel):
    """A link for creating one passkey. Creating it also signs the person in."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "name": "ana",
        "role": "analyst",
        "link": _LINK,
        "expires_at": CREATED,
    }

    name: str
    role: ConsoleRole
    link: str = Field(description="Link for creating a passkey; shown only once.")
    expires_at: datetime


class PersonChange(BodyModel):
    """Changes to a person."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    EXAMPLE: ClassVar[dict[str, Json]] = {"role": "operator", "enabled": None}

    role: _Role | None = None
    enabled: bool | None = Field(default=None, description="Whether the person can sign in.")

    @model_validator(mode="after")
    def _not_nothing(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("provide role, enabled or both")
        return self


class PasskeyItem(ResponseModel):
    """A passkey of a person."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "id": PASSKEY_ID,
        "label": "Firefox on Linux",
        "created_at": CREATED,
        "last_used_at": FINISHED,
    }

    id: str
    label: str
    created_at: datetime
    last_used_at: datetime | None


class PersonItem(ResponseModel):
    """A person with their passkeys."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "name": "ana",
        "role": "analyst",
        "status": "active",
        "created_by": "ben",
        "created_at": CREATED,
        "disabled_at": None,
        "link_expires_at": None,
        "passkeys": [PasskeyItem.EXAMPLE],
    }

    name: str
    role: ConsoleRole
    status: PersonStatus
    created_by: str
    created_at: datetime
    disabled_at: datetime | None
    link_expires_at: datetime | None = Field(
        description="When the person's unused link expires; null if there is none."
    )
    passkeys: list[PasskeyItem]


class PersonQuery(QueryModel):
    """A page of people."""

    limit: Limit = 50
    cursor: cursor_field(LIST) | None = None  # type: ignore[valid-type]


class PersonList(ResponseModel):
    """One page of people."""

    people: list[PersonItem]
    next_cursor: str | None = Field(description="Next `cursor`; null on the last page.")
