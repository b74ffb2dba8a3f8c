"""Form actions: from a form to an API endpoint and back to a page."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from functools import partial
from hashlib import sha256
from http import HTTPStatus
from inspect import iscoroutinefunction
from typing import Any, Protocol, cast

import orjson
from aiohttp import web
from pydantic import BaseModel, ValidationError
from yarl import URL

from tocsin.errors import RequestError
from tocsin.web.console.forms import Form, read_fields
from tocsin.web.console.page_request import PageRequest, find_endpoint
from tocsin.web.console.pages import ConsoleAction, message_key
from tocsin.web.console.sessions import (
    NOT_RECENT,
    ONCE,
    VERSION,
    ConsoleSessions,
    SignedInUser,
)
from tocsin.web.context import ApiServices, AsyncHandler, RequestContext, Response
from tocsin.web.dispatch import MutationHandler
from tocsin.web.idempotency import IdempotentRequest, compute_fingerprint
from tocsin.web.parsing import invalid_request, list_field_errors
from tocsin.web.problems import ProblemError, describe_error

_CHANGED = (
    "Nothing was saved, because the incident has changed since you opened this page. The page "
    "now shows the current values, and the form keeps your input. To apply your input, submit "
    "the form again."
)


class RenderPage(Protocol):
    """Renders the page of an action with its outcome."""

    def __call__(
        self, request: web.Request, user: SignedInUser, **extra: Any
    ) -> Awaitable[web.Response]:
        """Return the response."""


class ActionHandler:
    """Handles the submission of a form."""

    def __init__(
        self,
        action: ConsoleAction,
        services: ApiServices,
        sessions: ConsoleSessions,
        render: RenderPage,
    ) -> None:
        self._action = action
        self._services = services
        self._sessions = sessions
        self._render = render
        self._endpoint = find_endpoint(action.handler)
        confirm = partial(sessions.confirm, role=self._endpoint.console_role)
        self._changing = MutationHandler(self._endpoint, services, confirm)

    async def perform(self, request: web.Request) -> web.StreamResponse:
        """Redirect to the next page, or render the page with the error."""
        user = await self._sessions.admit(request, self._endpoint.console_role)
        form = await read_fields(request)
        self._sessions.require_own_form(request, user, form)
        try:
            self._require_recent(user)
            answer = await self._run(request, user, form)
        except RequestError as error:
            fault = describe_error(request, error)
            if fault.status == HTTPStatus.PRECONDITION_FAILED:
                fault = ProblemError(fault.status, _CHANGED)
            return await self._render(request, user, fault=fault, given=form)
        results = self._action.count_results(answer.content)
        if self._action.keeps or results is None:
            message = self._action.message
            return await self._render(request, user, answer=answer.content, message=message)
        return self._lead_on(request, answer, results)

    def _require_recent(self, user: SignedInUser) -> None:
        is_recent = user.has_recent_sign_in(self._services.clock.now())
        if self._action.gives_access and not is_recent:
            raise ProblemError(403, NOT_RECENT)

    async def _run(self, request: web.Request, user: SignedInUser, form: Form) -> Response:
        page_request = PageRequest(services=self._services, user=user, http=request)
        model = self._endpoint.body
        body = None if model is None else _parse(model, self._action.body(form))
        call = page_request.call(
            self._endpoint, request.match_info, {}, body=body, expected_tag=form.get(VERSION)
        )
        if iscoroutinefunction(self._action.handler):
            return await cast("AsyncHandler", self._action.handler)(call)
        attempt = self._attempt(call, form)
        if attempt is None:
            return await self._changing.change(call)
        return await self._changing.change_once(call, attempt)

    def _attempt(self, call: RequestContext, form: Form) -> IdempotentRequest | None:
        """Return the key that detects a duplicate submission, None if duplicates do no harm."""
        once = form.get(ONCE)
        if not once or not self._endpoint.idempotent:
            return None
        content = compute_fingerprint(call.request, call.body)
        key = sha256(f"{once} {content}".encode()).hexdigest()
        return IdempotentRequest(call.principal.id, f"form {key}", content)

    def _lead_on(
        self, request: web.Request, answer: Response, results: Mapping[str, str]
    ) -> web.Response:
        content = answer.content if isinstance(answer.content, Mapping) else {}
        names = {**content, **request.match_info}
        place = URL((self._action.after or self._action.page).format(**names))
        if results:
            place = place.update_query({**request.query, **results})
        place = place.update_query(message=message_key(self._action))
        return web.Response(status=303, headers={"Location": str(place)})


def _parse(model: type[BaseModel], members: Mapping[str, Any]) -> BaseModel:
    try:
        return model.model_validate_json(orjson.dumps(members))
    except orjson.JSONEncodeError:
        name = _find_unwritable(members)
        raise ProblemError(
            422, f"The value of {name} is nested too deeply. Use fewer levels."
        ) from None
    except ValidationError as error:
        raise invalid_request("form", list_field_errors(error, model)) from None


def _find_unwritable(members: Mapping[str, Any]) -> str:
    """Return the name of the field that JSON cannot hold, of a setting if it is one."""
    fields: dict[str, Any] = {**members, **members.get("settings", {})}
    for name, value in fields.items():
        if name == "settings":
            continue
        try:
            orjson.dumps(value)
        except orjson.JSONEncodeError:
            return name
    return "a field"
