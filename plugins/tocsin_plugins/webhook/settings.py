"""Settings of a webhook destination."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import Field, ModelWrapValidatorHandler, ValidationError, model_validator
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from tocsin import Channel
from tocsin_plugins.webhook.fields import (
    BodySecrets,
    Headers,
    KeyText,
    SecretText,
    SecretUrl,
    Url,
    split_url,
)


def rename_fields(error: ValidationError, names: Mapping[str, str]) -> ValidationError:
    """Return a copy of the error with other field names."""
    return ValidationError.from_exception_data(
        error.title,
        [_rename_field(detail, names) for detail in error.errors(include_url=False)],
        hide_input=True,
    )


def _rename_field(detail: ErrorDetails, names: Mapping[str, str]) -> InitErrorDetails:
    place = [names.get(str(part), part) for part in detail["loc"][:1]]
    return InitErrorDetails(
        type=PydanticCustomError(detail["type"], detail["msg"], detail.get("ctx")),
        loc=(*place, *detail["loc"][1:]),
        input=detail["input"],
    )


class Settings(Channel.Settings):
    """URL, signing keys and additional content."""

    url: Url | None = Field(
        default=None,
        description="The receiver's URL. A plain http:// URL requires `allow_networks`. Either "
        "`url` or `secret_url` is required.",
    )
    secret_url: SecretUrl | None = Field(
        default=None,
        description="The receiver's URL, if the URL itself is a credential. Tocsin stores it as a "
        "secret and never shows it. In plugins.toml, set `url` to a reference instead.",
    )
    secret: SecretText | None = Field(
        default=None,
        description="Secret, shared with the receiver, with which Tocsin signs every delivery. "
        "Format: `whsec_` followed by base64. Set `secret`, `signing_key` or both.",
    )
    previous_secret: SecretText | None = Field(
        default=None,
        description="The old secret, while you rotate `secret`. Tocsin signs deliveries with both "
        "secrets. When all receivers use the new secret, remove the old one.",
    )
    signing_key: KeyText | None = Field(
        default=None,
        description="Private key with which Tocsin signs every delivery. Format: `whsk_` followed "
        "by base64.",
    )
    previous_signing_key: KeyText | None = Field(
        default=None,
        description="The old signing key, while you rotate `signing_key`. Tocsin signs deliveries "
        "with both keys. When all receivers use the new public key, remove the old one.",
    )
    cloudevents: Literal["binary", "structured"] | None = Field(
        default=None,
        description="How to send events as CloudEvents 1.0: binary (attributes in headers) or "
        "structured (attributes around the body). By default, Tocsin does not send CloudEvents.",
    )
    headers: Headers = Field(
        default_factory=dict,
        description="Additional request headers. Specify secret values as references.",
    )
    body_secrets: BodySecrets = Field(
        default_factory=dict,
        description="Secrets that the receiver requires in the body, keyed by JSON member name. "
        "Tocsin inserts them when it sends the body.",
    )

    @property
    def address(self) -> str:
        """URL to post to, which may be a secret."""
        return self.secret_url.get_secret_value() if self.secret_url else self.url or ""

    @model_validator(mode="wrap")
    @classmethod
    def _reference_is_secret(cls, given: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        match given:
            case {"url": {**reference}} if "secret_url" not in given:
                try:
                    return handler({**given, "url": None, "secret_url": reference})
                except ValidationError as error:
                    raise rename_fields(error, {"secret_url": "url"}) from None
        return handler(given)

    @model_validator(mode="after")
    def _one_address(self) -> Self:
        if (self.url is None) == (self.secret_url is None):
            raise ValueError("set either url or, if the URL itself is a credential, secret_url")
        return self

    @model_validator(mode="after")
    def _signed(self) -> Self:
        if self.secret is None and self.signing_key is None:
            raise ValueError("set secret, signing_key or both, because Tocsin signs every request")
        return self

    @model_validator(mode="after")
    def _plain_only_inside(self) -> Self:
        if split_url(self.address).scheme == "http" and not self.allow_networks:
            raise ValueError(
                "use an https:// URL, or add the private network of this http:// URL to "
                "allow_networks"
            )
        return self

    @model_validator(mode="after")
    def _attributes_are_ours(self) -> Self:
        taken = [name for name in self.headers if name.lower().startswith("ce-")]
        if self.cloudevents and taken:
            raise ValueError(f"with cloudevents, Tocsin sets the header {taken[0]}; remove it")
        return self
