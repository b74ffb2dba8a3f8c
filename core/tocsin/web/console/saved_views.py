"""Views of the incident list that a user has saved, in a cookie until the user signs out."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from urllib.parse import parse_qsl, urlencode

import orjson
from aiohttp import web
from yarl import URL

from tocsin.credentials import ConsoleRole
from tocsin.web.console.forms import read_fields
from tocsin.web.console.sessions import SAVED_VIEWS_COOKIE, ConsoleSessions
from tocsin.web.problems import ProblemError

SAVED_VIEWS = "/incidents/views"
_LIST = "/incidents"
_LONGEST_NAME = 40
_LARGEST = 3_000
"""Characters of the cookie; browsers keep 4,096 bytes."""
_LASTS = 365 * 24 * 60 * 60
Views = dict[str, dict[str, str]]
"""The filters of each view, by its name."""


def load_views(request: web.Request) -> Views:
    """Return the saved views; none if the cookie is missing or not one of this console."""
    try:
        found = orjson.loads(urlsafe_b64decode(request.cookies.get(SAVED_VIEWS_COOKIE, "")))
        return {
            str(name)[:_LONGEST_NAME]: {str(key): str(value) for key, value in filters.items()}
            for name, filters in found.items()
        }
    except (ValueError, AttributeError):
        return {}


class SavedViewRoutes:
    """Handles the forms that save and remove views."""

    def __init__(self, sessions: ConsoleSessions) -> None:
        self._sessions = sessions

    async def change(self, request: web.Request) -> web.Response:
        """Save the view with the name and the query in the form; without a query, remove it."""
        user = await self._sessions.admit(request, ConsoleRole.VIEWER)
        form = await read_fields(request)
        self._sessions.require_own_form(request, user, form)
        name, filters = form.text("name"), dict(parse_qsl(form.text("query")))
        if not 0 < len(name) <= _LONGEST_NAME:
            raise ProblemError(422, f"Give the view a name of up to {_LONGEST_NAME} characters.")
        views = load_views(request)
        views.pop(name, None)
        if filters:
            views[name] = filters
        place = URL(f"{_LIST}?{urlencode(filters)}" if filters else _LIST)
        response = web.Response(status=303, headers={"Location": str(place)})
        self._store(response, views)
        return response

    def _store(self, response: web.Response, views: Mapping[str, Mapping[str, str]]) -> None:
        text = urlsafe_b64encode(orjson.dumps(views)).decode()
        if len(text) > _LARGEST:
            reason = "The saved views reached their size limit. Remove a view, then save this one."
            raise ProblemError(422, reason)
        self._sessions.keep(response, SAVED_VIEWS_COOKIE, text, _LASTS)
