"""A destination that takes signed HTTP POSTs."""

from __future__ import annotations

from functools import cached_property
from typing import Literal, Self

from pydantic import Field, SecretStr, model_validator

from tocsin import AnswerRules, Channel, Delivery, Event, Health, Misconfigured, Receipt
from tocsin_plugins.webhook.answers import receipt
from tocsin_plugins.webhook.cloudevents import binary, structured
from tocsin_plugins.webhook.fields import Headers, KeyText, SecretText, Url, split_url
from tocsin_plugins.webhook.signing import SharedSecret, Signer, SigningKey, signature_headers


class Webhook(Channel):
    """Posts each event, signed, and takes any 2xx answer for a receipt."""

    class Settings(Channel.Settings):
        """What a webhook destination can be told."""

        url: Url = Field(description="Where to post to; plain http:// only with allow_networks.")
        secret: SecretText | None = Field(
            default=None,
            description="Signs every delivery; receivers hold it too: whsec_ and base64. "
            "This, `signing_key` or both are needed.",
        )
        previous_secret: SecretText | None = Field(
            default=None, description="Signs as well, until receivers have changed to `secret`."
        )
        signing_key: KeyText | None = Field(
            default=None,
            description="Signs every delivery; receivers hold its public key: whsk_ and base64.",
        )
        previous_signing_key: KeyText | None = Field(
            default=None,
            description="Signs as well, until receivers have changed to that of `signing_key`.",
        )
        cloudevents: Literal["binary", "structured"] | None = Field(
            default=None,
            description="Send CloudEvents, with their attributes in headers or around the body.",
        )
        headers: Headers = Field(
            default_factory=dict,
            description="More headers to send; secrets among them as references.",
        )

        @model_validator(mode="after")
        def _signed(self) -> Self:
            if self.secret is None and self.signing_key is None:
                raise ValueError("give a secret, a signing_key or both; nothing is sent unsigned")
            return self

        @model_validator(mode="after")
        def _plain_only_inside(self) -> Self:
            if split_url(self.url).scheme == "http" and not self.allow_networks:
                raise ValueError(
                    "give an https:// url, or name in allow_networks the private network "
                    "that this http:// url leads to"
                )
            return self

        @model_validator(mode="after")
        def _attributes_are_ours(self) -> Self:
            taken = [name for name in self.headers if name.lower().startswith("ce-")]
            if self.cloudevents and taken:
                raise ValueError(f"with cloudevents the header {taken[0]} is set by Tocsin")
            return self

    settings: Settings

    async def start(self) -> None:
        """Raise `Misconfigured` for a URL that can never be requested."""
        self.tools.http.check_url(self.settings.url)

    async def check(self) -> Health:
        """Return what the settings tell: no request exists that a receiver has to answer."""
        parts = split_url(self.settings.url)
        keys = " or ".join(signer.describe() for signer in self._signers)
        problems: tuple[str, ...] = ()
        try:
            await self.tools.http.vet_url(self.settings.url)
        except Misconfigured as error:
            problems = (f"url: {error}",)
        return Health(
            detail=f"{parts.scheme} to {parts.hostname}, to be verified with {keys}; "
            "nothing was sent, since a webhook has no harmless request",
            problems=problems,
        )

    async def deliver(self, delivery: Delivery) -> Receipt:
        """Post the event, and return the receipt or raise what `receipt` reads in the answer."""
        headers, content = self._message(delivery.event, delivery.render("body"))
        now = self.tools.clock.now()
        signature = signature_headers(self._signers, delivery.event.id, now, content)
        response = await self.tools.http.request(
            "POST",
            self.settings.url,
            headers={**_plain(self.settings.headers), **headers, **signature},
            content=content,
            timeout=self.settings.timeout,
        )
        rules = delivery.contract.answer if delivery.contract else AnswerRules()
        return receipt(response, self.tools.clock.now(), rules)

    def _message(self, event: Event, body: bytes) -> tuple[dict[str, str], bytes]:
        source = self.tools.public_url or "tocsin"
        match self.settings.cloudevents:
            case "binary":
                return binary(event, source, body)
            case "structured":
                return structured(event, source, body)
            case None:
                return {"content-type": "application/json"}, body

    @cached_property
    def _signers(self) -> tuple[Signer, ...]:
        """The keys that sign, current ones first."""
        given: tuple[tuple[type[SharedSecret | SigningKey], SecretStr | None], ...] = (
            (SharedSecret, self.settings.secret),
            (SigningKey, self.settings.signing_key),
            (SharedSecret, self.settings.previous_secret),
            (SigningKey, self.settings.previous_signing_key),
        )
        return tuple(kind.decode(text.get_secret_value()) for kind, text in given if text)


def _plain(headers: Headers) -> dict[str, str]:
    return {name: text.get_secret_value() for name, text in headers.items()}
