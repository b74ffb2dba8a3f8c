"""Endpoints for people who sign in with passkeys."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import Connection

from tocsin import credentials
from tocsin.clock import isoformat, isoformat_or_none
from tocsin.credentials import (
    Passkey,
    PasskeysUnavailable,
    Person,
    PersonStatus,
    group_passkeys,
    issue_passkey_link,
    list_link_ends,
    list_passkeys,
    load_person,
)
from tocsin.errors import NameTakenError
from tocsin.model import Json
from tocsin.web.context import AccessRole, AuditedChange, Endpoint, RequestContext, Response
from tocsin.web.pagination import PageCursor, page_response
from tocsin.web.record_problems import (
    PASSKEY_NOT_FOUND,
    PASSKEYS_UNAVAILABLE,
    PERSON_DISABLED,
    PERSON_NAME_TAKEN,
    PERSON_NOT_FOUND,
)
from tocsin.web.routes.credential_records import NO_STORE, translate_record_errors
from tocsin.web.schemas.people import (
    LIST,
    NewPasskeyLink,
    NewPerson,
    PasskeyLink,
    PersonChange,
    PersonItem,
    PersonList,
    PersonQuery,
)


def create_person(connection: Connection, call: RequestContext) -> Response:
    """Create a person and return the link for their first passkey."""
    body: NewPerson = call.body
    _require_passkeys(call)
    by, now = call.principal.name, call.services.clock.now()
    try:
        person = credentials.create_person(connection, body.name, body.role, by, now)
    except NameTakenError:
        raise PERSON_NAME_TAKEN.error(name=body.name) from None
    return _issue_link(connection, call, person, body.expires_in_hours, {"role": person.role})


def create_passkey_link(connection: Connection, call: RequestContext) -> Response:
    """Issue a link for adding a passkey. The person's earlier links become invalid."""
    body: NewPasskeyLink = call.body
    _require_passkeys(call)
    person = _find(connection, call, lock=True)
    if person.status is PersonStatus.DISABLED:
        raise PERSON_DISABLED.error()
    return _issue_link(connection, call, person, body.expires_in_hours, {})


def list_people(connection: Connection, call: RequestContext) -> Response:
    """Return one page of people with their passkeys, by name."""
    query: PersonQuery = call.query
    after = query.cursor.name if query.cursor else None
    found = credentials.list_people(connection, query.limit + 1, after=after)
    shown = found[: query.limit]
    following = PageCursor.at_name(LIST, shown[-1].name) if len(found) > len(shown) else None
    ids = [person.id for person in shown]
    passkeys = group_passkeys(connection, ids)
    link_ends = list_link_ends(connection, ids, call.services.clock.now())
    items: list[Json] = [
        _represent(person, passkeys[person.id], link_ends.get(person.id)) for person in shown
    ]
    return page_response(call, {"people": items}, following)


def get_person(connection: Connection, call: RequestContext) -> Response:
    """Return a person with their passkeys."""
    return _respond(connection, call, _find(connection, call))


def update_person(connection: Connection, call: RequestContext) -> Response:
    """Change a person's role or status, end their sessions and return the person."""
    body: PersonChange = call.body
    with translate_record_errors(PERSON_NOT_FOUND):
        person, changed = credentials.change_person(
            connection,
            call.path["person"],
            call.services.clock.now(),
            role=body.role,
            enabled=body.enabled,
        )
    details: dict[str, Json] = {"role": person.role, "status": person.status}
    change = AuditedChange(target=person.principal, details=details) if changed else None
    return _respond(connection, call, person, change)


def delete_person(connection: Connection, call: RequestContext) -> Response:
    """Delete a person with their passkeys, saved views and sessions, and return the person."""
    person = _find(connection, call, lock=True)
    change = AuditedChange(target=person.principal)
    response = _respond(connection, call, person, change)
    credentials.delete_person(connection, person)
    return response


def delete_passkey(connection: Connection, call: RequestContext) -> Response:
    """Delete a passkey, end its owner's sessions and return the owner."""
    person = _find(connection, call, lock=True)
    with translate_record_errors(PASSKEY_NOT_FOUND):
        credentials.delete_passkey(connection, person, call.path["passkey_id"])
    target = f"passkey:{call.path['passkey_id']}"
    change = AuditedChange(target=target, details={"person": person.name})
    return _respond(connection, call, person, change)


def _require_passkeys(call: RequestContext) -> None:
    try:
        call.services.passkeys.require_available()
    except PasskeysUnavailable as error:
        raise PASSKEYS_UNAVAILABLE.error(reason=error) from None


def _find(connection: Connection, call: RequestContext, *, lock: bool = False) -> Person:
    with translate_record_errors(PERSON_NOT_FOUND):
        return load_person(connection, call.path["person"], lock=lock)


def _issue_link(
    connection: Connection,
    call: RequestContext,
    person: Person,
    hours: int,
    details: dict[str, Json],
) -> Response:
    now = call.services.clock.now()
    expires_at = now + timedelta(hours=hours)
    link = issue_passkey_link(
        connection, person, url=call.services.public_url, expires_at=expires_at, now=now
    )
    until = {"expires_at": isoformat(expires_at)}
    content: dict[str, Json] = {"name": person.name, "role": person.role, "link": link, **until}
    change = AuditedChange(target=person.principal, details={**details, **until})
    return Response(content, NO_STORE, change=change)


def _respond(
    connection: Connection,
    call: RequestContext,
    person: Person,
    change: AuditedChange | None = None,
) -> Response:
    passkeys = list_passkeys(connection, person.id)
    link_ends = list_link_ends(connection, [person.id], call.services.clock.now())
    return Response(_represent(person, passkeys, link_ends.get(person.id)), change=change)


def _represent(
    person: Person, passkeys: Sequence[Passkey], link_expires_at: datetime | None
) -> dict[str, Json]:
    return {
        "name": person.name,
        "role": person.role,
        "status": person.status,
        "created_by": person.created_by,
        "created_at": isoformat(person.created_at),
        "disabled_at": isoformat_or_none(person.disabled_at),
        "link_expires_at": isoformat_or_none(link_expires_at),
        "passkeys": [
            {
                "id": passkey.id,
                "label": passkey.label,
                "created_at": isoformat(passkey.created_at),
                "last_used_at": isoformat_or_none(passkey.last_used_at),
            }
            for passkey in passkeys
        ],
    }


_PEOPLE = "/api/admin/people"
_PERSON = f"{_PEOPLE}/{{person}}"

ENDPOINTS = (
    Endpoint(
        method="POST",
        path=_PEOPLE,
        access=AccessRole.ADMIN,
        summary="Create a person and return the link for their first passkey once",
        handler=create_person,
        body=NewPerson,
        response=PasskeyLink,
        action="person.create",
        idempotent=True,
        shows_secret=True,
        status=201,
        problems=(PERSON_NAME_TAKEN, PASSKEYS_UNAVAILABLE),
    ),
    Endpoint(
        method="GET",
        path=_PEOPLE,
        access=AccessRole.ADMIN,
        summary="List people who sign in with passkeys, by name",
        handler=list_people,
        query=PersonQuery,
        response=PersonList,
    ),
    Endpoint(
        method="GET",
        path=_PERSON,
        access=AccessRole.ADMIN,
        summary="Get a person with their passkeys",
        handler=get_person,
        is_brief=True,
        response=PersonItem,
        problems=(PERSON_NOT_FOUND,),
    ),
    Endpoint(
        method="PATCH",
        path=_PERSON,
        access=AccessRole.ADMIN,
        summary="Update a person's role or status and end their sessions",
        handler=update_person,
        body=PersonChange,
        response=PersonItem,
        action="person.change",
        problems=(PERSON_NOT_FOUND,),
    ),
    Endpoint(
        method="DELETE",
        path=_PERSON,
        access=AccessRole.ADMIN,
        summary="Delete a person, their passkeys, saved views and sessions",
        handler=delete_person,
        response=PersonItem,
        action="person.delete",
        problems=(PERSON_NOT_FOUND,),
    ),
    Endpoint(
        method="POST",
        path=f"{_PERSON}/passkey-link",
        access=AccessRole.ADMIN,
        summary="Issue a link for adding a passkey to a person and return it once",
        handler=create_passkey_link,
        body=NewPasskeyLink,
        body_required=False,
        response=PasskeyLink,
        action="person.issue-link",
        idempotent=True,
        shows_secret=True,
        status=201,
        problems=(PERSON_NOT_FOUND, PERSON_DISABLED, PASSKEYS_UNAVAILABLE),
    ),
    Endpoint(
        method="DELETE",
        path=f"{_PERSON}/passkeys/{{passkey_id}}",
        access=AccessRole.ADMIN,
        summary="Delete a passkey and end its owner's sessions",
        handler=delete_passkey,
        response=PersonItem,
        action="passkey.delete",
        problems=(PERSON_NOT_FOUND, PASSKEY_NOT_FOUND),
    ),
)
