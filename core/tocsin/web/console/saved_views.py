"""Forms of saved views, and the cookie in which earlier versions kept the views of a browser."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Awaitable, Callable
from urllib.parse import parse_qsl, urlencode

import orjson
import structlog
from aiohttp import web
from sqlalchemy import Connection
from yarl import URL

from tocsin.credentials import (
    LONGEST_VIEW_NAME,
    ConsoleRole,
    Views,
    add_views,
    delete_view,
    lock_saved_views,
    save_view,
)
from tocsin.store import clean_text, find_fault
from tocsin.web.console.forms import read_fields
from tocsin.web.console.sessions import SAVED_VIEWS_COOKIE, ConsoleSessions, SignedInUser
from tocsin.web.context import ApiServices

INCIDENTS = "/incidents"
SAVED_VIEWS = "/incidents/views"
_LONGEST_COOKIE = 3_000
"""Characters; earlier versions stored no more."""
_LASTS = 365 * 24 * 60 * 60
_LONGEST_INPUT = 1_000
_log = structlog.get_logger()
_Handler = Callable[[web.Request], Awaitable[web.Response]]


def read_cookie(request: web.Request) -> Views:
    """Return the views in the cookie; none if it is missing or not one of this console."""
    cookie = request.cookies.get(SAVED_VIEWS_COOKIE, "")
    if len(cookie) > _LONGEST_COOKIE:
        return {}
    try:
        found = orjson.loads(urlsafe_b64decode(cookie))
        views = {
            clean_text(name, LONGEST_VIEW_NAME): {
                key: value for key, value in filters.items() if isinstance(value, str)
            }
            for name, filters in found.items()
        }
    except (ValueError, AttributeError):
        return {}
    return {name: filters for name, filters in views.items() if name and filters}


class SavedViewRoutes:
    """Handles the forms that save and remove views, and takes over the views of cookies."""

    def __init__(self, services: ApiServices, sessions: ConsoleSessions) -> None:
        self._services = services
        self._sessions = sessions

    async def change(self, request: web.Request) -> web.Response:
        """Save the view with the name and the query in the form; without a query, remove it."""
        user = await self._sessions.admit(request, ConsoleRole.VIEWER)
        form = await read_fields(request)
        self._sessions.require_own_form(request, user, form)
        name = clean_text(form.text("name"), _LONGEST_INPUT)
        filters = dict(parse_qsl(form.text("query")))
        await self._services.database.write(self._change, request, user, name, filters)
        place = URL(f"{INCIDENTS}?{urlencode(filters)}" if filters else INCIDENTS)
        return web.Response(status=303, headers={"Location": str(place)})

    def _change(
        self,
        connection: Connection,
        request: web.Request,
        user: SignedInUser,
        name: str,
        filters: dict[str, str],
    ) -> None:
        owner = user.session.principal
        lock_saved_views(connection, owner)
        self._sessions.confirm(connection, request, ConsoleRole.VIEWER)
        if filters:
            save_view(connection, owner, name, filters, self._services.clock.now())
        else:
            delete_view(connection, owner, name)

    def taking_over(self, handle: _Handler) -> _Handler:
        """Wrap a handler: first store the views of the cookie as those of the user.

        The cookie keeps views for which there is no room. If the database cannot store any, it
        keeps all.
        """

        async def taking_over(request: web.Request) -> web.Response:
            views = read_cookie(request)
            if not views:
                return await handle(request)
            user = await self._sessions.admit(request, ConsoleRole.VIEWER)
            try:
                left = await self._services.database.write(self._take_over, request, user, views)
            except Exception as error:
                if (fault := find_fault(error)) is None:
                    raise
                _log.warning("saved views of a cookie not stored", reason=fault.summary)
                left = views
            response = await handle(request)
            if SAVED_VIEWS_COOKIE not in response.cookies:  # else the user has signed out
                self._store(response, left)
            return response

        return taking_over

    def _take_over(
        self, connection: Connection, request: web.Request, user: SignedInUser, views: Views
    ) -> Views:
        owner = user.session.principal
        lock_saved_views(connection, owner)
        self._sessions.confirm(connection, request, ConsoleRole.VIEWER)
        return add_views(connection, owner, views, self._services.clock.now())

    def _store(self, response: web.Response, views: Views) -> None:
        if views:
            text = urlsafe_b64encode(orjson.dumps(views)).decode()
            self._sessions.keep(response, SAVED_VIEWS_COOKIE, text, _LASTS)
        else:
            self._sessions.forget(response, SAVED_VIEWS_COOKIE)
