"""Settings of an OpenSearch cluster."""

from __future__ import annotations

from base64 import b64encode
from typing import Self

from pydantic import Field, SecretStr, model_validator
from pydantic_core import PydanticCustomError

from tocsin import ApiSettings


class ClusterSettings(ApiSettings):
    """Settings of a cluster with user or token authentication."""

    username: str | None = Field(
        default=None, min_length=1, description="The name of the user that Tocsin signs in as."
    )
    password: SecretStr | None = Field(default=None, description="The user's password.")
    token: SecretStr | None = Field(
        default=None,
        description="The bearer token (JWT) with which Tocsin signs in. Set `token` instead of "
        "`username` and `password`.",
    )

    @model_validator(mode="after")
    def _check_credentials(self) -> Self:
        is_pair = (self.username is None) is (self.password is None)
        if not is_pair or not (self.username or self.token or self.client_certificate):
            raise PydanticCustomError(
                "credentials", "set `username` and `password`, `token`, or `client_certificate`"
            )
        return self

    @property
    def authorization(self) -> dict[str, str]:
        """Authorization header, none if a client certificate is used alone."""
        if self.token is not None:
            return {"Authorization": f"Bearer {self.token.get_secret_value()}"}
        if self.username is None or self.password is None:
            return {}
        pair = f"{self.username}:{self.password.get_secret_value()}"
        return {"Authorization": f"Basic {b64encode(pair.encode()).decode()}"}
