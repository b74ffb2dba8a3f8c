"""A person's own passkeys: the list, and forms that add, rename and delete them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aiohttp import web
from sqlalchemy import Connection

from tocsin.credentials import (
    AuthenticationError,
    ConsoleRole,
    NewCredential,
    NoSuchRecordError,
    Passkey,
    Person,
    delete_passkey,
    find_principal,
    list_passkeys,
    rename_passkey,
)
from tocsin.web.console.forms import Form, read_fields
from tocsin.web.console.own_sessions import name_browser
from tocsin.web.console.page_request import PageRequest
from tocsin.web.console.pages import ConsolePage
from tocsin.web.console.passkeys import (
    PasskeyCookie,
    add_passkey,
    read_answer,
    read_label,
    record_passkey_action,
)
from tocsin.web.console.sessions import (
    NOT_RECENT,
    ConsoleSessions,
    NotSignedIn,
    SignedInUser,
)
from tocsin.web.context import ApiServices
from tocsin.web.problems import ProblemError
from tocsin.web.record_problems import PASSKEY_NOT_FOUND

OWN_PASSKEYS = "/my-passkeys"
_LAST = (
    "This is your last passkey. Without it, you would no longer be able to sign in. Create another "
    "passkey first, or ask an admin to delete this one."
)
_NO_PERSON = (
    "You did not sign in with a passkey, so you cannot create a passkey here. Ask an admin to add "
    "you on the People page of the console."
)


async def show_own_passkeys(request: PageRequest) -> Mapping[str, Any]:
    """Return the passkeys of the user, oldest first; None for users who cannot have any."""
    session = request.user.session
    passkeys = await request.services.database.read(_list, session.principal)
    return {
        "passkeys": passkeys,
        "origin": request.services.passkeys.origin,
        "label": name_browser(request.http.headers.get("User-Agent")),
    }


def _list(connection: Connection, principal: str) -> list[Passkey] | None:
    person = find_principal(connection, principal)
    return None if person is None else list_passkeys(connection, person.id)


class OwnPasskeyRoutes:
    """Changes passkeys of the user."""

    def __init__(self, services: ApiServices, sessions: ConsoleSessions) -> None:
        self._services = services
        self._sessions = sessions
        self._cookie = PasskeyCookie(sessions)

    async def begin_creation(self, request: web.Request) -> web.Response:
        """Respond with the options for another passkey."""
        try:
            user, _ = await self._admit(request)
        except NotSignedIn:
            raise ProblemError(401, "Your session has ended. Sign in and try again.") from None
        person, known = await self._services.database.read(self._find_known, request, user)
        return self._cookie.answer(self._services.passkeys.begin_creation(person, known))

    async def create(self, request: web.Request) -> web.Response:
        """Store another passkey, and show the list."""
        user, form = await self._admit(request)
        person, _ = await self._services.database.read(self._find_known, request, user)
        sealed, answer = self._cookie.read(request), read_answer(form)
        try:
            new = self._services.passkeys.finish_creation(sealed, answer, person)
        except AuthenticationError as error:
            raise ProblemError(401, str(error)) from None
        await self._services.database.write(self._store, request, user, new, read_label(form))
        response = _lead_to_list()
        self._cookie.forget(response)
        return response

    async def change(self, request: web.Request) -> web.Response:
        """Rename the passkey in the form, or delete it without a label, and show the list."""
        user, form = await self._admit(request)
        await self._services.database.write(self._change, request, user, form)
        return _lead_to_list()

    async def _admit(self, request: web.Request) -> tuple[SignedInUser, Form]:
        user = await self._sessions.admit(request, ConsoleRole.VIEWER)
        form = await read_fields(request)
        self._sessions.require_own_form(request, user, form)
        return user, form

    def _find_known(
        self, connection: Connection, request: web.Request, user: SignedInUser
    ) -> tuple[Person, list[Passkey]]:
        person = self._find(connection, request, user)
        if not user.has_recent_sign_in(self._services.clock.now()):
            raise ProblemError(403, NOT_RECENT)
        return person, list_passkeys(connection, person.id)

    def _find(
        self,
        connection: Connection,
        request: web.Request,
        user: SignedInUser,
        *,
        lock: bool = False,
    ) -> Person:
        """Return the person whose session has not ended; raises ProblemError (401, 403)."""
        person = find_principal(connection, user.session.principal, lock=lock)
        self._sessions.confirm(connection, request, ConsoleRole.VIEWER)
        if person is None:
            raise ProblemError(403, _NO_PERSON)
        return person

    def _store(
        self,
        connection: Connection,
        request: web.Request,
        user: SignedInUser,
        new: NewCredential,
        label: str,
    ) -> None:
        person = self._find(connection, request, user, lock=True)
        add_passkey(connection, self._services, request, person, new, label=label, method="session")

    def _change(
        self, connection: Connection, request: web.Request, user: SignedInUser, form: Form
    ) -> None:
        person, id_ = self._find(connection, request, user, lock=True), form.text("passkey")
        label = read_label(form) if "label" in form else None
        try:
            if label is None:
                if [passkey.id for passkey in list_passkeys(connection, person.id)] == [id_]:
                    raise ProblemError(409, _LAST)
                delete_passkey(connection, person, id_, secret=user.secret)
            else:
                rename_passkey(connection, person, id_, label)
        except NoSuchRecordError:
            raise PASSKEY_NOT_FOUND.error() from None
        record_passkey_action(
            connection,
            self._services,
            request,
            actor=person.principal,
            action="passkey.delete" if label is None else "passkey.rename",
            passkey_id=id_,
            details={"person": person.name} if label is None else {"label": label},
        )


def _lead_to_list() -> web.Response:
    return web.Response(status=303, headers={"Location": OWN_PASSKEYS})


OWN_PASSKEYS_PAGE = ConsolePage(
    path=OWN_PASSKEYS,
    view=show_own_passkeys,
    template="own_passkeys.html.j2",
    section="own-passkeys",
)
