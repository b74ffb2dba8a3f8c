"""Forms of saved views of the incident list."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode

from aiohttp import web
from sqlalchemy import Connection
from yarl import URL

from tocsin.credentials import ConsoleRole, delete_view, lock_saved_views, save_view
from tocsin.store import clean_text
from tocsin.web.console.forms import read_fields
from tocsin.web.console.sessions import ConsoleSessions, SignedInUser
from tocsin.web.context import ApiServices

SAVED_VIEWS = "/incidents/views"
SAVED, REMOVED = "view-saved", "view-removed"
"""Keys of the messages about a view."""
_INCIDENTS = "/incidents"
_LONGEST_INPUT = 1_000


class SavedViewRoutes:
    """Handles the forms that save and remove views."""

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
        place = URL(f"{_INCIDENTS}?{urlencode(filters)}" if filters else _INCIDENTS)
        place = place.update_query(message=SAVED if filters else REMOVED)
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
