"""Sign-in with a passkey, and links with which a person creates the first one."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import orjson
from aiohttp import web
from sqlalchemy import Connection

from tocsin.credentials import (
    CEREMONY_LIFETIME,
    LONGEST_SESSION,
    AuthenticationError,
    ConsoleSession,
    NewCredential,
    PasskeyUse,
    Person,
    Refusal,
    StartedCeremony,
    accept_use,
    find_link_person,
    find_passkey,
    list_passkeys,
    read_credential_id,
    redeem_passkey_link,
    store_passkey,
)
from tocsin.errors import RequestError
from tocsin.store import clean_text
from tocsin.web.console.forms import Form, read_fields
from tocsin.web.console.own_sessions import name_browser
from tocsin.web.console.sessions import ConsoleSessions, require_own_site
from tocsin.web.console.sign_in import SignInRoutes, respond_to_anyone
from tocsin.web.context import ApiServices
from tocsin.web.dispatch import build_audit_entry, record_action
from tocsin.web.problems import ProblemError, describe_error

PASSKEY_SIGN_IN = "/sign-in/passkey"
MAX_LABEL = 100
_NO_SCRIPT = (
    "Your browser did not send a passkey. Passkeys require JavaScript, so allow JavaScript for "
    "this site, and try again."
)
_INVALID_LINK = (
    "This link is invalid, has expired or was already used. Ask an admin for a new link. "
    "Admins can create links on the People page of the console or with `tocsin people link`."
)


class PasskeyCookie:
    """Keeps the challenge of a ceremony in the browser."""

    def __init__(self, sessions: ConsoleSessions) -> None:
        self._sessions = sessions
        self._name = sessions.name_cookie("tocsin-passkey")

    def answer(self, started: StartedCeremony) -> web.Response:
        """Return the options for the browser, with the challenge in the cookie."""
        response = web.Response(
            body=orjson.dumps(started.options),
            content_type="application/json",
            headers={"Cache-Control": "no-store"},
        )
        seconds = int(CEREMONY_LIFETIME.total_seconds())
        self._sessions.keep(response, self._name, started.sealed, seconds)
        return response

    def read(self, request: web.Request) -> str:
        """Return the sealed challenge, empty if there is none."""
        return request.cookies.get(self._name, "")

    def forget(self, response: web.StreamResponse) -> None:
        """Delete the cookie."""
        self._sessions.forget(response, self._name)


def read_answer(form: Form) -> str:
    """Return the response of an authenticator; raises ProblemError (422) if there is none."""
    if not (answer := form.get("credential", "")):
        raise ProblemError(422, _NO_SCRIPT)
    return answer


def read_label(form: Form) -> str:
    """Return the label of a passkey."""
    return clean_text(form.text("label"), MAX_LABEL) or "Passkey"


class PasskeyRoutes:
    """Routes for people who are not signed in."""

    def __init__(
        self, services: ApiServices, sessions: ConsoleSessions, sign_in: SignInRoutes
    ) -> None:
        self._services = services
        self._sign_in = sign_in
        self._cookie = PasskeyCookie(sessions)

    async def begin_sign_in(self, request: web.Request) -> web.Response:
        """Respond with the options of a sign-in."""
        require_own_site(request)
        await self._sign_in.require_allowed(request)
        self._services.rate_limits.count_ceremony(self._services.addresses.find(request))
        return self._cookie.answer(self._services.passkeys.begin_sign_in())

    async def take(self, request: web.Request) -> web.Response:
        """Begin a session for a passkey, or show the form with the error."""
        require_own_site(request)
        form = await read_fields(request)
        place = form.get("next", "")
        try:
            response = await self._take(request, form, place)
        except AuthenticationError as error:
            await self._sign_in.count_failure(request)
            response = await self._sign_in.form(place, ProblemError(401, str(error)))
        except RequestError as error:
            response = await self._sign_in.form(place, describe_error(request, error))
        self._cookie.forget(response)
        return response

    async def _take(self, request: web.Request, form: Form, place: str) -> web.Response:
        await self._sign_in.require_allowed(request)
        answer, database = read_answer(form), self._services.database
        passkey = await database.lookup(find_passkey, read_credential_id(answer))
        use = self._services.passkeys.finish_sign_in(self._cookie.read(request), answer, passkey)
        begun = await database.write(self._accept, use, self._services.clock.now(), request)
        if isinstance(begun, Refusal):
            raise AuthenticationError(f"The sign-in was refused: {begun}. Ask an admin for help.")
        return self._sign_in.lead(begun, place)

    def _accept(
        self, connection: Connection, use: PasskeyUse, now: datetime, request: web.Request
    ) -> tuple[str, datetime] | Refusal:
        person, refusal = accept_use(connection, use, now)
        if person is None or refusal is not None:
            reason = refusal or Refusal.DELETED
            if person is not None:
                record_passkey_action(
                    connection,
                    self._services,
                    request,
                    actor=person.principal,
                    action="passkey.refuse",
                    passkey_id=use.passkey_id,
                    details={"reason": reason},
                )
            return reason
        return self._begin(connection, person, use.passkey_id, now, request)

    def _begin(
        self,
        connection: Connection,
        person: Person,
        passkey_id: str,
        now: datetime,
        request: web.Request,
    ) -> tuple[str, datetime]:
        session = ConsoleSession(person.principal, person.name, person.role, now + LONGEST_SESSION)
        details = {"method": "passkey", "passkey": passkey_id}
        return self._sign_in.begin_session(connection, session, now, request, details)

    async def show_link(self, request: web.Request) -> web.Response:
        """Respond with the form for the code of a link, which a script fills in."""
        return self._link_form(request)

    async def begin_creation(self, request: web.Request) -> web.Response:
        """Respond with the options for the passkey of the person with a link."""
        require_own_site(request)
        form = await read_fields(request)
        try:
            person = await self._find_person(request, form.text("code"))
        except AuthenticationError as error:
            # The audit log counts it as it counts every problem document
            await self._sign_in.limit_failure(request)
            raise ProblemError(401, str(error)) from None
        known = await self._services.database.lookup(list_passkeys, person.id)
        return self._cookie.answer(self._services.passkeys.begin_creation(person, known))

    async def create(self, request: web.Request) -> web.Response:
        """Store the passkey and begin a session, or show the form with the error."""
        require_own_site(request)
        form = await read_fields(request)
        try:
            response = await self._create(request, form)
        except AuthenticationError as error:
            await self._sign_in.count_failure(request)
            response = self._link_form(request, ProblemError(401, str(error)), form.text("code"))
        except RequestError as error:
            fault = describe_error(request, error)
            response = self._link_form(request, fault, form.text("code"))
        self._cookie.forget(response)
        return response

    async def _create(self, request: web.Request, form: Form) -> web.Response:
        code, database = form.text("code"), self._services.database
        person = await self._find_person(request, code)
        sealed, answer = self._cookie.read(request), read_answer(form)
        new = self._services.passkeys.finish_creation(sealed, answer, person)
        begun = await database.write(self._redeem, code, new, read_label(form), request)
        if begun is None:
            raise AuthenticationError(_INVALID_LINK)
        return self._sign_in.lead(begun, "/")

    def _redeem(
        self,
        connection: Connection,
        code: str,
        new: NewCredential,
        label: str,
        request: web.Request,
    ) -> tuple[str, datetime] | None:
        now = self._services.clock.now()
        person = redeem_passkey_link(connection, code, now)
        if person is None:
            return None
        id_ = add_passkey(
            connection, self._services, request, person, new, label=label, method="link"
        )
        return self._begin(connection, person, id_, now, request)

    async def _find_person(self, request: web.Request, code: str) -> Person:
        """Return the person of a link; raises AuthenticationError."""
        await self._sign_in.require_allowed(request)
        now = self._services.clock.now()
        person = await self._services.database.lookup(find_link_person, code, now)
        if person is None:
            raise AuthenticationError(_INVALID_LINK)
        return person

    def _link_form(
        self, request: web.Request, fault: ProblemError | None = None, code: str = ""
    ) -> web.Response:
        try:
            self._services.passkeys.require_available()
        except RequestError as error:
            fault = describe_error(request, error)
        context = {
            "origin": self._services.passkeys.origin,
            "code": code,
            "label": name_browser(request.headers.get("User-Agent")),
        }
        return respond_to_anyone("passkey_link.html.j2", context, fault)


def add_passkey(
    connection: Connection,
    services: ApiServices,
    request: web.Request,
    person: Person,
    new: NewCredential,
    *,
    label: str,
    method: str,
) -> str:
    """Store a new passkey of a locked person with its audit entry, and return its ID."""
    passkey = store_passkey(
        connection, person, new, label, services.clock.now(), signs_in=method == "link"
    )
    record_passkey_action(
        connection,
        services,
        request,
        actor=person.principal,
        action="passkey.create",
        passkey_id=passkey.id,
        details={"label": label, "method": method},
    )
    return passkey.id


def record_passkey_action(
    connection: Connection,
    services: ApiServices,
    request: web.Request,
    *,
    actor: str,
    action: str,
    passkey_id: str,
    details: Mapping[str, str],
) -> None:
    """Record in the audit log what a person did with a passkey."""
    entry = build_audit_entry(
        services,
        request,
        services.clock.now(),
        actor=actor,
        action=action,
        target=f"passkey:{passkey_id}",
        details=details,
    )
    record_action(connection, services, entry)
