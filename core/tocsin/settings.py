"""The service's own settings: the environment variables `TOCSIN_*`."""

from __future__ import annotations

import os
from ipaddress import ip_address
from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from tocsin.errors import ConfigurationError, Problem
from tocsin.validation import explain, nearest

PREFIX = "TOCSIN_"


class Settings(BaseSettings):
    """What the environment says about how to run; read once, at start."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, frozen=True, hide_input_in_errors=True, env_ignore_empty=True
    )

    data_dir: Path = Field(
        default=Path("data"), description="Where the embedded database and generated keys live."
    )
    database_url: str = Field(
        default="",
        description="`sqlite:///path` or `postgresql://user:password@host/name`; by default "
        "`tocsin.db` in the data directory.",
    )
    plugins_file: Path = Field(
        default=Path("plugins.toml"), description="The file that enables and configures plugins."
    )
    host: str = Field(default="127.0.0.1", description="The address to listen on.")
    port: int = Field(default=8080, ge=0, le=65535, description="The port to listen on.")
    base_url: str = Field(
        default="",
        description="Where others reach this service, for links in events; by default "
        "`http://HOST:PORT`.",
    )
    encryption_key: SecretStr | None = Field(
        default=None,
        description="The key that secrets are encrypted with at rest: 32 bytes in URL-safe base64. "
        "Generated beside a SQLite database, required with PostgreSQL.",
    )
    encryption_key_file: Path | None = Field(
        default=None, description="A file that holds the encryption key, instead."
    )
    log_format: Literal["console", "json"] = Field(
        default="console", description="`console` for people, `json` for programs."
    )

    @field_validator("base_url")
    @classmethod
    def _absolute(cls, value: str) -> str:
        if value and not value.startswith(("http://", "https://")):
            raise ValueError("give an absolute URL, such as https://tocsin.example.org")
        return value.rstrip("/")

    @property
    def database(self) -> str:
        """The database's URL, the default filled in."""
        return self.database_url or f"sqlite:///{self.data_dir / 'tocsin.db'}"

    @property
    def public_url(self) -> str:
        """The base URL, the default filled in."""
        return self.base_url or f"http://{self._bracketed_host}:{self.port}"

    @property
    def _bracketed_host(self) -> str:
        try:
            return f"[{self.host}]" if ip_address(self.host).version == 6 else self.host  # noqa: PLR2004
        except ValueError:
            return self.host


def _misspelt() -> list[Problem]:
    """Return a problem for each variable that is almost one of ours."""
    known = [PREFIX + name.upper() for name in Settings.model_fields]
    return [
        Problem("environment", name, "unknown setting", f"remove it{hint}")
        for name in os.environ
        if name.startswith(PREFIX) and name not in known and (hint := nearest(name, known))
    ]


def load_settings() -> Settings:
    """Return the settings; ConfigurationError with every problem at once where there are any."""
    problems = _misspelt()
    try:
        settings = Settings()
    except ValidationError as error:
        problems += [
            Problem(
                "environment", PREFIX + mistake.path[0].upper(), mistake.found, mistake.expected
            )
            for mistake in explain(error, Settings)
        ]
    if problems:
        raise ConfigurationError(problems)
    return settings
