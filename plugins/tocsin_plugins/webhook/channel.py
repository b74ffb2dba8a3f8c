"""Webhook channel: signed HTTP POSTs."""

from __future__ import annotations

from functools import cached_property

from pydantic import SecretStr

from tocsin import AnswerRules, Channel, Delivery, Event, Health, Misconfigured, Receipt
from tocsin_plugins.webhook.cloudevents import to_binary, to_structured
from tocsin_plugins.webhook.fields import Headers, split_url
from tocsin_plugins.webhook.responses import read_receipt
from tocsin_plugins.webhook.secrets import insert_secrets, list_secret_parts, redact_secrets
from tocsin_plugins.webhook.settings import Settings as WebhookSettings
from tocsin_plugins.webhook.signing import SharedSecret, Signer, SigningKey, signature_headers


class Webhook(Channel):
    """Posts each event with signatures; any 2xx response is a receipt."""

    Settings = WebhookSettings
    settings: WebhookSettings

    async def start(self) -> None:
        """Raise `Misconfigured` for a URL that can never be requested."""
        self.tools.http.check_url(self.settings.address)

    async def check(self) -> Health:
        """Report on the settings alone: webhooks have no harmless request."""
        parts = split_url(self.settings.address)
        keys = " or ".join(signer.describe() for signer in self._signers)
        problems: tuple[str, ...] = ()
        try:
            await self.tools.http.vet_url(self.settings.address)
        except Misconfigured as error:
            problems = (f"{'secret_url' if self.settings.secret_url else 'url'}: {error}",)
        return Health(
            detail=f"{parts.scheme} to {parts.hostname}, verified with {keys}; "
            "nothing was sent: webhooks have no harmless request",
            problems=problems,
        )

    async def deliver(self, delivery: Delivery) -> Receipt:
        """Post the event; return the receipt, or raise the failure in the response."""
        body = insert_secrets(delivery.render("body"), self.settings.body_secrets)
        headers, content = self._message(delivery.event, body)
        now = self.tools.clock.now()
        signature = signature_headers(self._signers, delivery.event.id, now, content)
        response = await self.tools.http.request(
            "POST",
            self.settings.address,
            headers={**_reveal_headers(self.settings.headers), **headers, **signature},
            content=content,
            timeout=self.settings.timeout,
        )
        rules = delivery.contract.answer if delivery.contract else AnswerRules()
        kept = redact_secrets(response, self._unspoken)
        return read_receipt(kept, self.tools.clock.now(), rules)

    def _message(self, event: Event, body: bytes) -> tuple[dict[str, str], bytes]:
        source = self.tools.public_url or "tocsin"
        match self.settings.cloudevents:
            case "binary":
                return to_binary(event, source, body)
            case "structured":
                return to_structured(event, source, body)
            case None:
                return {"content-type": "application/json"}, body

    @property
    def _unspoken(self) -> tuple[str, ...]:
        """Secrets that are removed from stored responses."""
        texts = (text.get_secret_value() for text in self.settings.body_secrets.values())
        of_url = (
            list_secret_parts(split_url(self.settings.address)) if self.settings.secret_url else ()
        )
        return (*texts, *of_url)

    @cached_property
    def _signers(self) -> tuple[Signer, ...]:
        """Signing keys, current ones first."""
        given: tuple[tuple[type[SharedSecret | SigningKey], SecretStr | None], ...] = (
            (SharedSecret, self.settings.secret),
            (SigningKey, self.settings.signing_key),
            (SharedSecret, self.settings.previous_secret),
            (SigningKey, self.settings.previous_signing_key),
        )
        return tuple(kind.decode(text.get_secret_value()) for kind, text in given if text)


def _reveal_headers(headers: Headers) -> dict[str, str]:
    return {name: text.get_secret_value() for name, text in headers.items()}
