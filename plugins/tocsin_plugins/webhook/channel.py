"""Webhook channel: signed HTTP POSTs, and the interpretation of responses.

Standard Webhooks 1.0.0 and the receiver's contract determine what a response means.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from functools import cached_property, reduce
from http import HTTPStatus
from typing import Any

from pydantic import SecretStr

from tocsin import (
    AnswerCondition,
    AnswerRules,
    Channel,
    Delivery,
    Event,
    Health,
    HttpResponse,
    Misconfigured,
    Receipt,
    Refused,
    TryLater,
    retry_after,
)
from tocsin_plugins.webhook.cloudevents import to_binary, to_structured
from tocsin_plugins.webhook.fields import split_url
from tocsin_plugins.webhook.settings import Settings as WebhookSettings
from tocsin_plugins.webhook.signing import (
    Ed25519Signer,
    SharedSecret,
    Signer,
    insert_secrets,
    list_secret_parts,
    signature_headers,
)

_OVERLOADED = (
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.GATEWAY_TIMEOUT,
)
_NO_RULES = AnswerRules()
_NOTHING = object()


class Webhook(Channel[WebhookSettings]):
    """Posts each event as a signed request; by default, any 2xx response confirms the delivery."""

    async def start(self) -> None:
        """Raise `Misconfigured` if Tocsin can never send requests to the URL."""
        self.tools.http.check_url(self._url)

    async def check(self) -> Health:
        """Check only the settings, because every request delivers an event."""
        parts = split_url(self._url)
        keys = " or ".join(signer.describe() for signer in self._signers)
        problems: tuple[str, ...] = ()
        try:
            await self.tools.http.vet_url(self._url)
        except Misconfigured as error:
            problems = (f"{'secret_url' if self.settings.secret_url else 'url'}: {error}",)
        return Health(
            detail=f"{parts.scheme} to {parts.hostname}, signed with {keys}; "
            "no request was sent, because every request delivers an event",
            problems=problems,
        )

    async def deliver(self, delivery: Delivery) -> Receipt:
        """Post the event, and return the receipt or raise the failure that the response reports."""
        body = insert_secrets(delivery.render("body"), self.settings.body_secrets)
        headers, content = self._message(delivery.event, body)
        now = self.tools.clock.now()
        signature = signature_headers(self._signers, delivery.event.id, now, content)
        response = await self.tools.http.request(
            "POST",
            self._url,
            headers={
                **delivery.trace_headers,
                **self._headers,
                **headers,
                **_epoch_header(delivery.event),
                **signature,
            },
            content=content,
            timeout=self.settings.timeout,
        )
        rules = delivery.contract.answer if delivery.contract else _NO_RULES
        return read_receipt(response, self.tools.clock.now(), rules, delivery.event.id)

    @property
    def _url(self) -> str:
        """URL to post to; not stored, because it may be a secret."""
        return self.settings.address

    def _message(self, event: Event, body: bytes) -> tuple[dict[str, str], bytes]:
        source = self.tools.public_url or "tocsin"
        match self.settings.cloudevents:
            case "binary":
                return to_binary(event, source, body)
            case "structured":
                return to_structured(event, source, body)
            case None:
                return {"content-type": "application/json"}, body

    def list_secrets(self) -> Iterable[str]:
        """Return the secrets in the settings, and the parts of a secret URL."""
        of_url = list_secret_parts(split_url(self._url)) if self.settings.secret_url else ()
        return *super().list_secrets(), *of_url

    @cached_property
    def _headers(self) -> dict[str, str]:
        """Additional headers from the settings."""
        given = self.settings.headers
        return {name: text.get_secret_value() for name, text in given.items()}

    @cached_property
    def _signers(self) -> tuple[Signer, ...]:
        """Signing keys, current ones first."""
        given: tuple[tuple[type[SharedSecret | Ed25519Signer], SecretStr | None], ...] = (
            (SharedSecret, self.settings.secret),
            (Ed25519Signer, self.settings.signing_key),
            (SharedSecret, self.settings.previous_secret),
            (Ed25519Signer, self.settings.previous_signing_key),
        )
        return tuple(kind.decode(text.get_secret_value()) for kind, text in given if text)


def _epoch_header(event: Event) -> dict[str, str]:
    """Return the epoch in which the event was stored; empty for test events."""
    epoch = event.context.get("epoch")
    return {} if epoch is None else {"tocsin-epoch": str(epoch)}


def read_receipt(
    response: HttpResponse, now: datetime, rules: AnswerRules = _NO_RULES, event_id: str = ""
) -> Receipt:
    """Return the receipt if the response is a 2xx, or reports that the event is already known.

    Raises `Refused` for 410 Gone, for a `webhook-delivery` header that rules out retries, and for
    statuses that the rules list as permanent. Raises `TryLater` for every other response. This
    includes redirects, and 2xx responses without the proof that the rules require, because some
    platforms and proxies return 200 for events that they lose.
    """
    document = _parse_body(response.body)
    if rules.known is not None and _matches_rule(rules.known, document):
        return _build_receipt(response, rules.known.pointer, document)
    if not HTTPStatus.OK <= response.status < HTTPStatus.MULTIPLE_CHOICES:
        raise _build_refusal(response, rules) or _build_retry(response, now)
    if missing := _find_missing_proof(response, document, rules, event_id):
        raise TryLater(
            f"the receiver returned {response.status}, but {missing}",
            status=response.status,
            response=response.body,
        )
    return _build_receipt(response, rules.remote_id, document)


def _find_missing_proof(
    response: HttpResponse, document: Any, rules: AnswerRules, event_id: str
) -> str | None:
    """Return which proof a 2xx response lacks according to the rules; None if it is complete."""
    for saying in rules.success:
        if not _matches_rule(saying, document):
            place = f"the value at {saying.pointer}" if saying.pointer else "the body"
            return f"{place} does not report success"
    if rules.text is not None and response.body.strip() != rules.text.encode():
        return f"the body is not {rules.text!r}"
    if rules.remote_id is not None and not _is_present(rules.remote_id, document):
        return f"the ID of the created object is missing at {rules.remote_id}"
    if not (rules.accepted or rules.event_id) or response.status in rules.accepted:
        return None
    if rules.event_id is not None and _resolve_pointer(rules.event_id, document) == event_id:
        return None
    proofs = [f"status {status}" for status in rules.accepted]
    if rules.event_id is not None:
        proofs.append(f"the event ID at {rules.event_id}")
    return f"did not confirm that it received the event (expected {' or '.join(proofs)})"


def _is_present(pointer: str, document: Any) -> bool:
    found = _resolve_pointer(pointer, document)
    return found is not _NOTHING and found is not None


def _build_receipt(response: HttpResponse, pointer: str | None, document: Any) -> Receipt:
    found = None if pointer is None else _resolve_pointer(pointer, document)
    remote_id = str(found) if isinstance(found, str | int) else None
    return Receipt(status=response.status, response=response.body, remote_id=remote_id)


def _parse_body(body: bytes) -> Any:
    if not body:
        return None
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _matches_rule(saying: AnswerCondition, document: Any) -> bool:
    if saying.equals is None:
        return _is_present(saying.pointer, document)
    found = _resolve_pointer(saying.pointer, document)
    return type(found) is type(saying.equals) and found == saying.equals


def _resolve_pointer(pointer: str, document: Any) -> Any:
    """Return the value at a JSON Pointer (RFC 6901)."""
    parts = (part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:])
    return reduce(_find_member, parts, document)


def _find_member(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        return value.get(name, _NOTHING)
    if isinstance(value, list) and name.isdecimal() and int(name) < len(value):
        return value[int(name)]
    return _NOTHING


def _build_retry(response: HttpResponse, now: datetime) -> TryLater:
    return TryLater(
        f"the receiver returned {response.status}",
        after=retry_after(response.headers, now),
        throttled=response.status in _OVERLOADED,
        status=response.status,
        response=response.body,
    )


def _build_refusal(response: HttpResponse, rules: AnswerRules) -> Refused | None:
    """Return the refusal if the receiver does not want a retry; None otherwise.

    The header is proposed for the standard in https://github.com/standard-webhooks/standard-
    webhooks/pull/291.
    """
    wish = response.headers.get("webhook-delivery", "").strip().lower()
    if response.status == HTTPStatus.GONE or wish == "disable":
        unwanted, meaning = True, "it does not accept further deliveries"
    elif wish == "abort-message":
        unwanted, meaning = False, "it does not accept this event again"
    elif response.status in rules.permanent:
        unwanted, meaning = False, "it would reject a retry too"
    else:
        return None
    return Refused(
        f"the receiver returned {response.status}: {meaning}",
        unwanted=unwanted,
        status=response.status,
        response=response.body,
    )
