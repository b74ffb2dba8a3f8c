"""Routes, pages and actions of the console."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from aiohttp import web
from aiohttp.typedefs import Handler
from yarl import URL

from tocsin.credentials import (
    BACK_CHANNEL_LOGOUT,
    CALLBACK,
    PASSKEY_LINK,
    SIGN_IN_LINK,
    CheckRequired,
)
from tocsin.web.authentication import AccessControl
from tocsin.web.console import rendering, saved_views
from tocsin.web.console.actions import ActionHandler
from tocsin.web.console.forms import read_fields
from tocsin.web.console.live_updates import LiveStreams, build_reload, is_live, live_path
from tocsin.web.console.own_passkeys import OWN_PASSKEYS, OWN_PASSKEYS_PAGE, OwnPasskeyRoutes
from tocsin.web.console.own_sessions import OWN_SESSIONS, OWN_SESSIONS_PAGE, OwnSessionRoutes
from tocsin.web.console.page_request import PageRequest
from tocsin.web.console.pages import ConsoleAction, ConsolePage, message_key
from tocsin.web.console.passkeys import PASSKEY_SIGN_IN, PasskeyRoutes
from tocsin.web.console.plugin_pages import build_plugin_pages
from tocsin.web.console.saved_views import SAVED_VIEWS, SavedViewRoutes
from tocsin.web.console.sessions import (
    ONCE,
    ConsoleSessions,
    NotSignedIn,
    SignedInUser,
)
from tocsin.web.console.sign_in import OIDC_SIGN_IN, SIGN_IN, OidcSignInRoutes, SignInRoutes
from tocsin.web.console.views import (
    api_clients,
    api_keys,
    audit,
    deliveries,
    destinations,
    detections,
    graph,
    incidents,
    investigations,
    ledger,
    overview,
    people,
    plugins,
    providers,
    quarantine,
    schedules,
    search,
    suppressions,
    ticket_statuses,
)
from tocsin.web.context import REQUEST_ID_KEY, ApiServices
from tocsin.web.problems import ProblemError, describe_error

_VIEWS = (
    overview,
    incidents,
    detections,
    investigations,
    ledger,
    schedules,
    graph,
    search,
    deliveries,
    destinations,
    suppressions,
    ticket_statuses,
    providers,
    quarantine,
    people,
    api_keys,
    api_clients,
    plugins,
    audit,
)

PAGES: tuple[ConsolePage, ...] = (
    *(page for view in _VIEWS for page in view.PAGES),
    OWN_PASSKEYS_PAGE,
    OWN_SESSIONS_PAGE,
)
ACTIONS: tuple[ConsoleAction, ...] = tuple(action for view in _VIEWS for action in view.ACTIONS)
MESSAGES: dict[str | None, str] = {
    **{message_key(action): action.message for action in ACTIONS},
    saved_views.SAVED: "View saved.",
    saved_views.REMOVED: "View removed.",
}
"""Success messages by their keys."""


_SIGNED_OUT = "Your session has ended. Nothing was changed. Sign in and try again."
_TEXTS = ("text", "query", "message", "disposition_reason", "reason")
"""Form fields with text that is shown again when the session has ended."""
_NO_PAGE = "There is no page at this address."
_BY_PATH = {page.path: page for page in PAGES}
_PAGES_OF_ACTIONS = {action.path: action.page for action in ACTIONS}

RenderMissing = Callable[[web.Request, Exception], Awaitable[web.Response | None]]
"""Returns a page for an error, None to respond with a problem document."""


def add_console(
    app: web.Application, services: ApiServices, access_control: AccessControl
) -> RenderMissing:
    """Add the console's routes; return the handler that renders pages for unknown addresses."""
    console = _Console(services)
    get, post = app.router.add_get, app.router.add_post
    get("/console/{name}", rendering.get_asset)
    console.plugin_pages = build_plugin_pages(services.inventory)
    for page in (*PAGES, *console.plugin_pages.values()):
        get(page.path, console.guarded(partial(console.show, page)))
        if page.is_live:
            # a response to HEAD must have no body, but a stream would write one
            follow = console.guarded(partial(console.stream, page))
            get(live_path(page.path), follow, allow_head=False)
    for action in ACTIONS:
        render = partial(console.render, _BY_PATH[action.page])
        performer = ActionHandler(action, services, console.sessions, render)
        post(action.path, console.guarded(performer.perform))
    post(OWN_SESSIONS, console.guarded(OwnSessionRoutes(services, console.sessions).end))
    own_passkeys = OwnPasskeyRoutes(services, console.sessions)
    post(OWN_PASSKEYS, console.guarded(own_passkeys.change))
    post(f"{OWN_PASSKEYS}/options", own_passkeys.begin_creation)
    post(f"{OWN_PASSKEYS}/new", console.guarded(own_passkeys.create))
    own_views = SavedViewRoutes(services, console.sessions)
    post(SAVED_VIEWS, console.guarded(own_views.change))
    sign_in = SignInRoutes(services, access_control, console.sessions)
    get(SIGN_IN, console.guarded(sign_in.show))
    post(SIGN_IN, console.guarded(sign_in.take))
    get(SIGN_IN_LINK, console.guarded(sign_in.show_link))
    post(SIGN_IN_LINK, console.guarded(sign_in.take_link))
    passkeys = PasskeyRoutes(services, console.sessions, sign_in)
    post(f"{PASSKEY_SIGN_IN}/options", passkeys.begin_sign_in)
    post(PASSKEY_SIGN_IN, console.guarded(passkeys.take))
    get(PASSKEY_LINK, console.guarded(passkeys.show_link))
    post(f"{PASSKEY_LINK}/options", passkeys.begin_creation)
    post(PASSKEY_LINK, console.guarded(passkeys.create))
    post("/sign-out", console.guarded(sign_in.leave))
    if services.oidc_sign_in is not None:
        oidc = OidcSignInRoutes(services, sign_in, services.oidc_sign_in, console.sessions)
        get(OIDC_SIGN_IN, console.guarded(oidc.lead), allow_head=False)
        get(CALLBACK, console.guarded(oidc.arrive), allow_head=False)
        post(BACK_CHANNEL_LOGOUT, oidc.end_sessions)
    app.on_shutdown.append(console.streams.close)
    return console.show_missing


class _Console:
    """Handlers that all pages share."""

    def __init__(self, services: ApiServices) -> None:
        self._services = services
        self.sessions = ConsoleSessions(services)
        self.streams = LiveStreams(services.clock)
        self.plugin_pages: Mapping[str, ConsolePage] = {}

    def guarded(self, handle: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> Handler:
        """Wrap a handler: render errors as pages, and redirect to the sign-in page if needed."""

        async def guarded(request: web.Request) -> web.StreamResponse:
            try:
                return await handle(request)
            except (CheckRequired, NotSignedIn) as error:
                return await self._ask_again(request, error)
            except Exception as error:  # noqa: BLE001 - every error becomes a page
                return await self._show_error(request, error)

        return guarded

    async def _ask_again(
        self, request: web.Request, error: CheckRequired | NotSignedIn
    ) -> web.StreamResponse:
        """Send the browser to the issuer or to the sign-in page."""
        if is_live(request):
            return build_reload()
        if isinstance(error, CheckRequired):
            place = str(request.rel_url)
            check = URL(OIDC_SIGN_IN).with_query(next=place, check="yes")
            return web.Response(status=303, headers={"Location": str(check)})
        if request.method in {"GET", "HEAD"}:
            return _lead_to_sign_in(request)
        return await self._show_error(
            request, ProblemError(401, _SIGNED_OUT), texts=await _read_texts(request)
        )

    async def show_missing(self, request: web.Request, error: Exception) -> web.Response | None:
        """Return a page for a browser at an unknown address, None for any other error."""
        is_page = "text/html" in request.headers.get("Accept", "")
        if not isinstance(error, web.HTTPNotFound) or not is_page:
            return None
        if request.path.startswith("/api/"):
            return None
        return await self._show_error(request, ProblemError(404, _NO_PAGE))

    async def show(self, page: ConsolePage, request: web.Request) -> web.Response:
        """Respond with a page."""
        user = await self.sessions.admit(request, page.role)
        return await self.render(
            page, request, user, message=MESSAGES.get(request.query.get("message"))
        )

    async def render(
        self, page: ConsolePage, request: web.Request, user: SignedInUser, **extra: Any
    ) -> web.Response:
        """Return a page with additional context, such as messages."""
        once = secrets.token_urlsafe(12)
        context = {**await self._context(page, request, user, once), **extra}
        status = context["fault"].status if context["fault"] else 200
        # A live update would replace a message that is shown once
        if context["fault"] or context["answer"]:
            context["live"] = None
        return rendering.respond(page.template, context, status)

    async def stream(self, page: ConsolePage, request: web.Request) -> web.StreamResponse:
        """Stream the content of a page whenever it changes."""

        async def render() -> str:
            user = await self.sessions.admit(request, page.role)
            once = request.query.get(ONCE, "")
            context = await self._context(page, request, user, once)
            message = MESSAGES.get(request.query.get("message"))
            return rendering.fragment(page.template, {**context, "message": message})

        return await self.streams.answer(request, render)

    async def _context(
        self, page: ConsolePage, request: web.Request, user: SignedInUser, once: str
    ) -> Mapping[str, Any]:
        page_request = PageRequest(services=self._services, user=user, http=request)
        live = live_path(str(request.rel_url.update_query({ONCE: once})))
        now = self._services.clock.now()
        common = {
            **_DEFAULTS,
            "user": user,
            "is_recent": user.has_recent_sign_in(now),
            "section": page.section,
            "loaded_at": now,
            "once": once,
            "live": live if page.is_live else None,
            "plugin_pages": {
                title: own.path
                for title, own in self.plugin_pages.items()
                if user.session.role.includes(own.role) and "{" not in own.path
            },
        }
        shown = await page.view(page_request)
        return {**common, "replica_age": max(page_request.ages, default=None), **shown}

    async def _show_error(
        self, request: web.Request, error: Exception, *, texts: Sequence[str] = ()
    ) -> web.Response:
        fault = describe_error(request, error)
        user = await self._find_user(request)
        is_ours = fault.status >= HTTPStatus.INTERNAL_SERVER_ERROR
        context = {
            "user": user,
            "section": "",
            "title": HTTPStatus(fault.status).phrase,
            **_DEFAULTS,
            "texts": texts,
            "sign_in": None if user else _sign_in_path(_find_page(request)),
            "fault": fault,
            "request_id": request[REQUEST_ID_KEY] if is_ours else "",
        }
        response = rendering.respond("error.html.j2", context, fault.status)
        response.headers.update(fault.headers)
        return response

    async def _find_user(self, request: web.Request) -> SignedInUser | None:
        try:
            return await self._services.database.lookup(self.sessions.find, request)
        except Exception:  # noqa: BLE001 - another error is already being shown
            return None


_DEFAULTS: Mapping[str, Any] = {
    "message": None,
    "fault": None,
    "answer": None,
    "given": {},
    "once": "",
    "live": None,
    "loaded_at": None,
    "replica_age": None,
    "plugin_pages": {},
    "paths": frozenset(_BY_PATH),
}
"""Default context of all pages."""


def _lead_to_sign_in(request: web.Request) -> web.Response:
    place = _sign_in_path(str(request.rel_url))
    return web.Response(status=303, headers={"Location": place})


def _sign_in_path(place: str) -> str:
    """Return the address of the sign-in page that leads to a page."""
    return str(URL(SIGN_IN).with_query(next=place))


def _find_page(request: web.Request) -> str:
    """Return the path of the page with the form that was sent, `/` if it is not known."""
    resource = request.match_info.route.resource
    page = _PAGES_OF_ACTIONS.get(resource.canonical, "/") if resource else "/"
    return page.format(**{name: quote(part, "") for name, part in request.match_info.items()})


async def _read_texts(request: web.Request) -> list[str]:
    """Return the text that a user has typed into a form of the console."""
    if request.headers.get("Sec-Fetch-Site") != "same-origin":
        return []
    try:
        form = await read_fields(request)
    except ProblemError:
        return []
    return [text for name in _TEXTS if (text := form.text(name))]
