"""Administering API keys."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from ulid import ULID

from tocsin.clock import isoformat
from tocsin.credentials import ApiKey, Scope, generate
from tocsin.credentials import create_api_key as store_api_key
from tocsin.web.calls import Answer, Call
from tocsin.web.gate import API_KEY
from tocsin.web.parsing import Body
from tocsin.web.problems import Kind, refusal

_SCOPES = sorted(Scope)

Name = Annotated[
    str,
    StringConstraints(
        strip_whitespace=True, min_length=1, max_length=100, pattern=r"^[^\x00-\x1f\x7f]*$"
    ),
]
# PostgreSQL's text holds every character but this one
Text = Annotated[str, StringConstraints(max_length=1000, pattern=r"^[^\x00]*$")]


class NewApiKey(Body):
    """What an API key is to be."""

    name: Name
    scopes: list[str] = Field(
        min_length=1, max_length=100, json_schema_extra={"items": {"enum": list(_SCOPES)}}
    )
    description: Text = ""
    expires_in_days: int = Field(default=365, ge=1, le=3650)


class CreatedApiKey(BaseModel):
    """A new API key, with its value."""

    model_config = ConfigDict(extra="forbid")

    id: str
    key_id: str = Field(description="The key's public identifier.")
    api_key: str = Field(description="The key itself, shown this once.")
    name: str
    scopes: list[Scope]
    expires_at: datetime
    header_name: str = Field(description="The header that carries the key.")


async def create_api_key(call: Call) -> Answer:
    """Create an API key, and answer its value."""
    body: NewApiKey = call.body
    services = call.services
    scopes = _known(body.scopes)
    value, text = generate(services.key_prefix)
    now = services.clock.now()
    key = ApiKey(
        id=str(ULID()),
        key_id=value.key_id,
        name=body.name,
        description=body.description,
        scopes=scopes,
        secret_hash=await services.hasher.hash(value.secret),
        created_by=call.principal.name,
        created_at=now,
        expires_at=now + timedelta(days=body.expires_in_days),
    )
    await services.database.write(store_api_key, key)
    content = {
        "id": key.id,
        "key_id": key.key_id,
        "api_key": text,
        "name": key.name,
        "scopes": key.scopes,
        "expires_at": isoformat(key.expires_at),
        "header_name": API_KEY,
    }
    return Answer(content, {"Cache-Control": "no-store"})


def _known(scopes: Sequence[str]) -> tuple[str, ...]:
    """Return the scopes, each once and in order; CallerError (400) where there is no such scope."""
    unknown = sorted(set(scopes).difference(_SCOPES))
    if unknown:
        raise refusal(
            Kind.INVALID_SCOPE,
            400,
            f"There is no scope {', '.join(map(repr, unknown))}; valid are {', '.join(_SCOPES)}.",
        )
    return tuple(sorted(set(scopes)))
