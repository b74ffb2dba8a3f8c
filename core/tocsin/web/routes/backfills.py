"""Backfills: having a stretch of the past read."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import Field, model_validator
from sqlalchemy import Connection

from tocsin import incidents
from tocsin.clock import isoformat
from tocsin.errors import CallerError
from tocsin.hookspecs import Capability
from tocsin.incidents import BackfillOrigin, BackfillState
from tocsin.model import Window
from tocsin.validation import suggest_nearest
from tocsin.web.context import AuditedChange, RequestContext, Response
from tocsin.web.pagination import PageCursor
from tocsin.web.parsing import BodyModel, QueryModel, ResponseModel
from tocsin.web.routes.fields import Limit, Timestamp, cursor_field, not_found, page_response

LIST = "b"
_PREFIX = "bkf_"
ProviderName = Annotated[str, Field(min_length=1, max_length=100)]


class NewBackfill(BodyModel):
    """What to read."""

    provider: ProviderName = Field(description="The provider's name in `plugins.toml`.")
    from_: Timestamp = Field(alias="from", description="Its beginning.")
    to: Timestamp = Field(
        description="Its end, which has passed; what changed at that very moment is not read."
    )
    alert: bool = Field(default=False, description="Send alerts for what is new.")

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.from_ >= self.to:
            raise ValueError("`from` must be before `to`")
        return self


class BackfillItem(ResponseModel):
    """A stretch of the past that is read, and how far that has come."""

    id: str
    provider: str
    origin: BackfillOrigin = Field(description="`lost`: it could not be read when its time came.")
    alert: bool
    state: BackfillState
    pages: int
    records: int
    new: int = Field(description="Incidents that were new.")
    changed: int = Field(description="Incidents that had changed.")
    rejected: int = Field(description="Records that were kept aside.")
    from_: datetime = Field(alias="from")
    to: datetime
    progress: float | None = Field(
        description="From 0 to 1; null where what is read does not tell by time."
    )
    reason: str | None = Field(description="Why it waits or has failed.")
    created_by: str
    created_at: datetime
    updated_at: datetime
    finished_at: datetime | None
    reached: datetime | None = Field(description="Up to when everything was read.")


class BackfillQuery(QueryModel):
    """Which, and how many at once."""

    provider: ProviderName | None = Field(default=None, description="Only those of this provider.")
    limit: Limit = 50
    cursor: cursor_field(LIST) | None = None  # type: ignore[valid-type]


class BackfillList(ResponseModel):
    """One page of backfills."""

    backfills: list[BackfillItem]
    total: int
    next_cursor: str | None = Field(description="For `cursor`; null on the last page.")


def create_backfill(connection: Connection, call: RequestContext) -> Response:
    """Have a stretch of the past read, and answer the backfill."""
    body: NewBackfill = call.body
    _require_able(call, body.provider)
    now = call.services.clock.now()
    if body.to > now:
        raise CallerError(422, f"`to` is yet to come; it is {isoformat(now)} here.")
    made = incidents.create_backfill(
        connection,
        body.provider,
        Window(body.from_, body.to),
        alert=body.alert,
        origin=BackfillOrigin.OPERATOR,
        by=call.principal.name,
        now=now,
    )
    details = {name: made[name] for name in ("provider", "from", "to", "alert")}
    return Response(made, change=AuditedChange(target=f"backfill:{made['id']}", details=details))


def _require_able(call: RequestContext, name: str) -> None:
    """Raise CallerError (422) where there is no such provider, or it cannot read the past."""
    known = {facts.name: facts for facts in call.services.providers}
    if name not in known:
        words = f"There is no provider {name!r}{suggest_nearest(name, sorted(known))}."
        raise CallerError(422, words)
    if Capability.BACKFILL not in known[name].capabilities:
        raise CallerError(422, f"The plugin {known[name].plugin!r} cannot read the past.")


def list_backfills(connection: Connection, call: RequestContext) -> Response:
    """Answer one page of the backfills, the newest first."""
    query: BackfillQuery = call.query
    before = _PREFIX + query.cursor.before if query.cursor else None
    page = incidents.list_backfills(
        connection, limit=query.limit, provider=query.provider, before=before
    )
    content = {"backfills": page.backfills, "total": page.total}
    following = PageCursor(LIST, page.next.removeprefix(_PREFIX)) if page.next else None
    return page_response(call, content, following)


def get_backfill(connection: Connection, call: RequestContext) -> Response:
    """Answer one backfill, with how far it has come."""
    return Response(_find(connection, call))


def cancel_backfill(connection: Connection, call: RequestContext) -> Response:
    """End a backfill where it is, and answer it; one that has ended stays as it is."""
    id_, now = call.path["backfill_id"], call.services.clock.now()
    cancelled = incidents.end_backfill(connection, id_, BackfillState.CANCELLED, now)
    found = _find(connection, call)
    change = AuditedChange(target=f"backfill:{id_}", details={"records": found["records"]})
    return Response(found, change=change if cancelled else None)


def _find(connection: Connection, call: RequestContext) -> dict[str, Any]:
    found = incidents.load_backfill(connection, call.path["backfill_id"])
    if found is None:
        raise not_found("backfill")
    return found
