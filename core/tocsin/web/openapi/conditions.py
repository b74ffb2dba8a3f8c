"""What refusals depend on: a condition says whether an endpoint can come to it."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus

from tocsin.web.context import AccessRole, Endpoint

Condition = Callable[[Endpoint], bool]


def is_admins(endpoint: Endpoint) -> bool:
    """Return whether it is for admins."""
    return endpoint.access is AccessRole.ADMIN


def is_scoped(endpoint: Endpoint) -> bool:
    """Return whether it asks for a scope."""
    return not isinstance(endpoint.access, AccessRole)


def is_pushed_to(endpoint: Endpoint) -> bool:
    """Return whether a provider judges who may call it."""
    return endpoint.access is AccessRole.SENDER


def is_guarded(endpoint: Endpoint) -> bool:
    """Return whether it takes a key or a bearer token."""
    return is_admins(endpoint) or is_scoped(endpoint)


def is_oauth(endpoint: Endpoint) -> bool:
    """Return whether it speaks OAuth 2.0."""
    return endpoint.access is AccessRole.CLIENT


def is_ours(endpoint: Endpoint) -> bool:
    """Return whether it answers errors as problem documents."""
    return not is_oauth(endpoint)


def takes_json(endpoint: Endpoint) -> bool:
    """Return whether it takes a JSON body."""
    return endpoint.body is not None and is_ours(endpoint)


def parses_json(endpoint: Endpoint) -> bool:
    """Return whether it takes a JSON body that is read against a model, within the usual bound."""
    return takes_json(endpoint) and not is_pushed_to(endpoint)


def needs_json(endpoint: Endpoint) -> bool:
    """Return whether it cannot do without a JSON body."""
    return takes_json(endpoint) and endpoint.body_required


def grants(endpoint: Endpoint) -> bool:
    """Return whether its body holds scopes to be granted."""
    return takes_json(endpoint) and "scopes" in getattr(endpoint.body, "model_fields", ())


def is_idempotent(endpoint: Endpoint) -> bool:
    """Return whether it takes an Idempotency-Key."""
    return endpoint.idempotent


def shows_secret(endpoint: Endpoint) -> bool:
    """Return whether it takes one, and answers what is shown once."""
    return endpoint.idempotent and endpoint.shows_secret


def names(part: str) -> Condition:
    """Return the condition that the path has a part of this name."""
    return lambda endpoint: f"{{{part}}}" in endpoint.path


def conflicts(endpoint: Endpoint) -> bool:
    """Return whether the state of what it acts on may forbid it."""
    return HTTPStatus.CONFLICT in endpoint.errors


def reads_store(endpoint: Endpoint) -> bool:
    """Return whether it needs the database, and answers errors as problem documents."""
    needs = (
        endpoint.access is not AccessRole.PUBLIC
        or HTTPStatus.SERVICE_UNAVAILABLE in endpoint.errors
    )
    return needs and is_ours(endpoint)


def is_at(path: str) -> Condition:
    """Return the condition that the path is this one."""
    return lambda endpoint: endpoint.path == path


def is_in_graph(endpoint: Endpoint) -> bool:
    """Return whether it begins with a node that may not be known."""
    return endpoint.path.startswith("/api/v1/graph/") and HTTPStatus.NOT_FOUND in endpoint.errors


def investigates(endpoint: Endpoint) -> bool:
    """Return whether it has something investigated, which needs room for it."""
    return is_scoped(endpoint) and HTTPStatus.SERVICE_UNAVAILABLE in endpoint.errors


def runs_schedule(endpoint: Endpoint) -> bool:
    """Return whether it has a schedule run, which needs somebody who investigates."""
    return names("schedule_id")(endpoint) and HTTPStatus.SERVICE_UNAVAILABLE in endpoint.errors


def changes_schedule(endpoint: Endpoint) -> bool:
    """Return whether it says what a schedule is, or that there is none."""
    return names("schedule_id")(endpoint) and endpoint.method in {"PATCH", "DELETE"}
