"""Where a cluster is, and who asks it."""

from __future__ import annotations

from base64 import b64encode
from typing import Self

from pydantic import Field, SecretStr, model_validator
from pydantic_core import PydanticCustomError

from tocsin import ApiSettings


class ClusterSettings(ApiSettings):
    """What is told to whoever asks a cluster that signs in users or takes tokens."""

    username: str | None = Field(default=None, min_length=1, description="The user to sign in as.")
    password: SecretStr | None = Field(default=None, description="That user's password.")
    token: SecretStr | None = Field(
        default=None, description="A token (JWT) to show instead of both, where they are taken."
    )

    @model_validator(mode="after")
    def _has_one_way_in(self) -> Self:
        is_pair = (self.username is None) is (self.password is None)
        if not is_pair or not (self.username or self.token or self.client_certificate):
            raise PydanticCustomError(
                "credentials", "give `username` and `password`, `token`, or `client_certificate`"
            )
        return self

    @property
    def authorization(self) -> dict[str, str]:
        """The field that each request has; none where the certificate is all that is shown."""
        if self.token is not None:
            return {"Authorization": f"Bearer {self.token.get_secret_value()}"}
        if self.username is None or self.password is None:
            return {}
        pair = f"{self.username}:{self.password.get_secret_value()}"
        return {"Authorization": f"Basic {b64encode(pair.encode()).decode()}"}
