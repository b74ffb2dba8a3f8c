"""Routes, pages and actions of the console."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from http import HTTPStatus
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from yarl import URL

from tocsin.credentials import CALLBACK
from tocsin.errors import CallerError
from tocsin.web.authentication import AccessControl
from tocsin.web.console import rendering
from tocsin.web.console.actions import ActionHandler
from tocsin.web.console.live_updates import LiveStreams, live_path
from tocsin.web.console.page_request import PageRequest
from tocsin.web.console.pages import ConsoleAction, ConsolePage, message_key
from tocsin.web.console.sessions import ONCE, ConsoleSessions, NotSignedIn, SignedInUser
from tocsin.web.console.sign_in import OIDC_SIGN_IN, SIGN_IN, OidcSignInRoutes, SignInRoutes
from tocsin.web.console.views import (
    api_clients,
    api_keys,
    audit,
    deliveries,
    destinations,
    graph,
    incidents,
    investigations,
    ledger,
    overview,
    plugins,
    providers,
    schedules,
    search,
)
from tocsin.web.context import ApiServices
from tocsin.web.problems import describe_error

_ROOMS = (
    overview,
    incidents,
    investigations,
    ledger,
    schedules,
    graph,
    search,
    deliveries,
    destinations,
    providers,
    api_keys,
    api_clients,
    plugins,
    audit,
)

PAGES: tuple[ConsolePage, ...] = tuple(page for room in _ROOMS for page in room.PAGES)
ACTIONS: tuple[ConsoleAction, ...] = tuple(action for room in _ROOMS for action in room.ACTIONS)
SAID: dict[str | None, str] = {message_key(action): action.said for action in ACTIONS}
"""What the next page tells of an action, by the word in its address."""


_SIGNED_OUT = "You are not signed in any more; nothing was changed. Sign in and try again."
_BY_PATH = {page.path: page for page in PAGES}


def add_console(app: web.Application, services: ApiServices, gate: AccessControl) -> None:
    """Add the console's routes to the application."""
    console = _Console(services)
    get, post = app.router.add_get, app.router.add_post
    get("/console/{name}", rendering.get_asset)
    for page in PAGES:
        get(page.path, console.guarded(partial(console.show, page)))
        if page.is_live:
            # an answer to HEAD has no body, which a stream would write all the same
            follow = console.guarded(partial(console.stream, page))
            get(live_path(page.path), follow, allow_head=False)
    for action in ACTIONS:
        render = partial(console.render, _BY_PATH[action.page])
        performer = ActionHandler(action, services, console.visitors, render)
        post(action.path, console.guarded(performer.perform))
    sign_in = SignInRoutes(services, gate, console.visitors)
    get(SIGN_IN, console.guarded(sign_in.show))
    post(SIGN_IN, console.guarded(sign_in.take))
    post("/sign-out", console.guarded(sign_in.leave))
    if services.oidc_sign_in is not None:
        oidc = OidcSignInRoutes(services, sign_in, services.oidc_sign_in)
        get(OIDC_SIGN_IN, console.guarded(oidc.lead), allow_head=False)
        get(CALLBACK, console.guarded(oidc.arrive), allow_head=False)
    app.middlewares.append(console.lost)
    app.on_shutdown.append(console.streams.close)


class _Console:
    """What every page goes through."""

    def __init__(self, services: ApiServices) -> None:
        self._services = services
        self.visitors = ConsoleSessions(services)
        self.streams = LiveStreams(services.clock)

    def guarded(self, handle: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> Handler:
        """Return a handler whose errors are pages, and that leads to the sign-in if need be."""

        async def guarded(request: web.Request) -> web.StreamResponse:
            try:
                return await handle(request)
            except NotSignedIn:
                if request.method in {"GET", "HEAD"} and not request.path.startswith("/live/"):
                    return _lead_to_sign_in(request)
                return await self._show_error(request, CallerError(401, _SIGNED_OUT))
            except Exception as error:  # noqa: BLE001 - whatever it is, it becomes a page
                return await self._show_error(request, error)

        return guarded

    @property
    def lost(self) -> Middleware:
        """What shows a page to people who ask for an address that there is not."""

        @web.middleware
        async def lost(request: web.Request, handler: Handler) -> web.StreamResponse:
            try:
                return await handler(request)
            except web.HTTPNotFound as error:
                is_page = "text/html" in request.headers.get("Accept", "")
                if not is_page or request.path.startswith("/api/"):
                    raise
                return await self._show_error(request, error)

        return lost

    async def show(self, page: ConsolePage, request: web.Request) -> web.Response:
        """Answer a page."""
        visitor = await self.visitors.admit(request, page.role)
        return await self.render(page, request, visitor, said=SAID.get(request.query.get("said")))

    async def render(
        self, page: ConsolePage, request: web.Request, visitor: SignedInUser, **told: Any
    ) -> web.Response:
        """Return a page with what is `told` beside what it shows."""
        once = secrets.token_urlsafe(12)
        context = {**await self._context(page, request, visitor, once), **told}
        status = context["fault"].status if context["fault"] else 200
        if context["fault"] or context["answer"]:  # what is told but once would not stay
            context["live"] = None
        return rendering.respond(page.template, context, status)

    async def stream(self, page: ConsolePage, request: web.Request) -> web.StreamResponse:
        """Answer what changes of a page, as it changes."""

        async def render() -> str:
            visitor = await self.visitors.admit(request, page.role)
            once = request.query.get(ONCE, "")  # the page's
            context = await self._context(page, request, visitor, once)
            said = SAID.get(request.query.get("said"))
            return rendering.fragment(page.template, {**context, "said": said})

        return await self.streams.answer(request, render)

    async def _context(
        self, page: ConsolePage, request: web.Request, visitor: SignedInUser, once: str
    ) -> Mapping[str, Any]:
        reading = PageRequest(services=self._services, visitor=visitor, request=request)
        live = live_path(str(request.rel_url.update_query({ONCE: once})))
        common = {
            **_TOLD,
            "visitor": visitor,
            "section": page.section,
            "once": once,
            "live": live if page.is_live else None,
        }
        return {**common, **await page.view(reading)}

    async def _show_error(self, request: web.Request, error: Exception) -> web.Response:
        fault = describe_error(request, error)
        context = {
            "visitor": await self._visitor_or_none(request),
            "section": "",
            "title": HTTPStatus(fault.status).phrase,
            **_TOLD,
            "fault": fault,
        }
        response = rendering.respond("error.html.j2", context, fault.status)
        response.headers.update(fault.headers)
        return response

    async def _visitor_or_none(self, request: web.Request) -> SignedInUser | None:
        try:
            return await self._services.database.lookup(self.visitors.find, request)
        except Exception:  # noqa: BLE001 - there is an error to tell of already
            return None


_TOLD: Mapping[str, Any] = {
    "said": None,
    "fault": None,
    "answer": None,
    "given": {},
    "once": "",
    "live": None,
    "paths": frozenset(_BY_PATH),
}
"""What pages may be told beside what they show, and mostly are not."""


def _lead_to_sign_in(request: web.Request) -> web.Response:
    place = URL(SIGN_IN).with_query(next=str(request.rel_url))
    return web.Response(status=303, headers={"Location": str(place)})
