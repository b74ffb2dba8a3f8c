"""Building blocks of plugin settings: base class, durations, networks, secrets."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Annotated, Any, ClassVar, get_args, get_origin
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    SecretStr,
    StringConstraints,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
)
from pydantic_core import PydanticCustomError

from tocsin.durations import parse_duration
from tocsin.model import Vocabulary
from tocsin.servers import find_targets


@dataclass(frozen=True, slots=True)
class SettingsOrigin:
    """Origin of settings, passed to pydantic as `context`: a file, or a request."""

    folder: Path | None = None
    """The folder of the file; None for a request, which must not name local files."""

    def context(self) -> dict[str, Any]:
        """Return the validation context."""
        return {"origin": self}

    @staticmethod
    def of(info: ValidationInfo) -> SettingsOrigin:
        """Return the origin of the validated value; by default, a file in the current folder."""
        origin: SettingsOrigin = (info.context or {}).get("origin", SettingsOrigin(Path()))
        return origin


def _refuse_over_http(value: Any, info: ValidationInfo) -> Any:
    if SettingsOrigin.of(info).folder is None:
        raise PydanticCustomError("local", "set this in plugins.toml; it is not accepted over HTTP")
    return value


def _resolve_path(value: str, info: ValidationInfo) -> str:
    return str((SettingsOrigin.of(info).folder or Path()).joinpath(value).absolute())


def any_case(vocabulary: type[Vocabulary]) -> BeforeValidator:
    """Return a validator that accepts the values of an enumeration in any letter case."""
    parse: Callable[[Any], Any] = vocabulary.parse
    return BeforeValidator(lambda value: parse(value) if isinstance(value, str) else value)


def _to_whole_number(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


WholeNumber = BeforeValidator(_to_whole_number)
"""Accepts an integer in any notation, because JSON does not distinguish 7.0 from 7."""

LONGEST_QUERY = 20_000
NOT_BLANK = r"^[^\x00]*[^\x00\s][^\x00]*$"
"""Pattern of text that is not blank, without NUL, which PostgreSQL does not store."""
QueryText = Annotated[
    str,
    StringConstraints(
        strip_whitespace=True, min_length=1, max_length=LONGEST_QUERY, pattern=NOT_BLANK
    ),
]
"""The question of an investigation, as text that is not blank."""


FileOnly = BeforeValidator(_refuse_over_http)
"""Annotates settings that only `plugins.toml` may contain, because they concern the machine."""

LocalPath = Annotated[str, Field(min_length=1), AfterValidator(_resolve_path), FileOnly]
"""A local path or glob. Relative paths start at the directory of `plugins.toml`."""


CERTIFICATE_FILES = ("ca_file", "client_certificate", "client_key")
"""Settings of plugins that name PEM files."""


class _OwnServer:
    """Marks a field with the address of a plugin's own server."""


def _check_base_url(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise PydanticCustomError("server", "use an address such as 'https://siem.example.com'")
    if parts.username or parts.password:
        raise PydanticCustomError("server", "use the address without a user name and password")
    return value.rstrip("/")


ServerUrl = Annotated[
    str,
    AfterValidator(_check_base_url),
    _OwnServer(),
    WithJsonSchema({"type": "string", "examples": ["https://siem.example.com"]}),
]
"""A server's URL. All plugins except channels can reach this server even if its address is
private."""

_SECRET_NAME = re.compile(r"auth|cookie|key|password|secret|token", re.IGNORECASE)
_REFERENCE = 'use { env = "NAME" } or { file = "path" }'
LONGEST_DURATION = timedelta(days=36_500)


def _parse_duration(value: object) -> object:
    if isinstance(value, timedelta):
        return value
    if not isinstance(value, str):  # a bare number would silently mean seconds
        raise PydanticCustomError(
            "duration", "use a number with a unit in quotes, such as '30s', '5m', '24h' or '7d'"
        )
    try:
        return parse_duration(value)
    except (ValueError, OverflowError) as error:
        raise PydanticCustomError(
            "duration", "use a number with a unit, such as '30s', '5m', '24h' or '7d'"
        ) from error


def _check_bounds(value: timedelta) -> timedelta:
    if not timedelta(0) <= value <= LONGEST_DURATION:
        raise PydanticCustomError("duration", "use a duration from 0s to 36500d")
    return value


def _parse_network(value: object) -> object:
    """Return the network; the error for an address with host bits suggests the network."""
    if not isinstance(value, str):
        return value
    try:
        return ip_network(value)
    except ValueError:
        pass
    try:
        network = ip_network(value, strict=False)
    except ValueError:
        raise PydanticCustomError("network", "use a network such as '10.20.0.0/16'") from None
    raise PydanticCustomError(
        "network", "the address has host bits set; write '{network}'", {"network": str(network)}
    )


Network = Annotated[
    IPv4Network | IPv6Network,
    PlainValidator(_parse_network),
    WithJsonSchema({"type": "string", "examples": ["10.20.0.0/16"]}),
]
"""A network in CIDR notation."""


Duration = Annotated[
    timedelta,
    BeforeValidator(_parse_duration),
    AfterValidator(_check_bounds),
    WithJsonSchema({"type": "string", "examples": ["30s", "5m", "24h", "7d"]}),
]
"""A duration, such as `30s`, `5m`, `24h` or `7d`, or in ISO 8601, such as `PT15M`."""


def _is_secret(annotation: object) -> bool:
    return annotation is SecretStr or any(_is_secret(part) for part in get_args(annotation))


def _is_local(part: object) -> bool:
    return part is FileOnly or any(_is_local(arg) for arg in get_args(part))


def _read_reference(reference: dict[str, Any], base: Path) -> str:
    match reference:
        case {"env": str(name), **rest} if not rest:
            found = f"found {{ env = {name!r} }}"
            if name not in os.environ:
                raise _secret_error(found, f"set the environment variable {name}")
            if not os.environ[name].strip():
                raise _secret_error(found, f"the environment variable {name} is empty: set it")
            return os.environ[name]
        case {"file": str(name), **rest} if not rest:
            try:
                return read_secret_file((base / name).absolute())
            except ValueError as error:
                raise _secret_error(f"found {{ file = {name!r} }}", str(error)) from error
    raise _secret_error(
        "found a table of " + (", ".join(map(repr, reference)) or "nothing"), _REFERENCE
    )


def read_secret_file(path: Path) -> str:
    """Return the secret in a file; ValueError, with the remedy, if there is none."""
    try:
        text = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8"
        raise ValueError(f"make {path} readable ({reason})") from error
    if not text:
        raise ValueError(f"{path} is empty: write the secret to it")
    return text


def _secret_error(found: str, expected: str) -> PydanticCustomError:
    """Return an error that shows only the reference of a secret."""
    context = {"found": found, "expected": expected}
    return PydanticCustomError("secret", "{expected}", context)


def _resolve(value: object, origin: SettingsOrigin) -> SecretStr:
    if origin.folder is None:
        return _take_literal(value)
    if not isinstance(value, dict):
        raise _secret_error("found a secret in plain text", _REFERENCE)
    return SecretStr(_read_reference(value, origin.folder))


def _take_literal(value: object) -> SecretStr:
    """Return the secret of a request, which must not reference local secrets."""
    if not isinstance(value, str):
        raise _secret_error("found a value that is not text", "enter the secret itself, as text")
    return SecretStr(value)


def is_secret_name(name: str) -> bool:
    """Return whether a name indicates a secret, such as `Authorization`."""
    return bool(_SECRET_NAME.search(name))


def _resolve_member(name: str, member: object, origin: SettingsOrigin) -> SecretStr:
    """Return a member of a table that may hold secrets; its name decides whether it is one."""
    if isinstance(member, str) and not is_secret_name(name):
        return SecretStr(member)
    if isinstance(member, str) and origin.folder is not None:
        raise _secret_error(f"found a secret in plain text as {name}", _REFERENCE)
    return _resolve(member, origin)


def _find_paths(table: Mapping[str, Any], names: Iterable[str], folder: Path) -> Iterator[Path]:
    named = (table.get(name) for name in names)
    return ((folder / each).absolute() for each in named if isinstance(each, str))


class PluginSettings(BaseModel):
    """Base class for plugin settings.

    Unknown keys are errors. A field annotated `SecretStr` accepts only `{ env = "NAME" }` or `{
    file = "path" }`, so that `plugins.toml` never contains secrets. Relative paths start at the
    directory of `plugins.toml`. A field annotated `dict[str, SecretStr]` also accepts plain text,
    except under names that indicate a secret, such as `Authorization`. Over the API, secrets are
    plain text, and references with `env` or `file` are errors. Tocsin encrypts the secrets before
    it stores them.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", frozen=True, hide_input_in_errors=True
    )

    @field_validator("*", mode="before")
    @classmethod
    def _resolve_secret(cls, value: object, info: ValidationInfo) -> object:
        annotation = cls.model_fields[info.field_name or ""].annotation
        if value is None or not _is_secret(annotation):
            return value
        origin = SettingsOrigin.of(info)
        if get_origin(annotation) is dict and isinstance(value, dict):
            return {name: _resolve_member(name, member, origin) for name, member in value.items()}
        return _resolve(value, origin)

    @classmethod
    def secret_fields(cls) -> frozenset[str]:
        """Return the names of the secret fields."""
        fields = cls.model_fields.items()
        return frozenset(name for name, field in fields if _is_secret(field.annotation))

    @classmethod
    def local_fields(cls) -> frozenset[str]:
        """Return the names of the fields that can be set only in `plugins.toml`."""
        fields = cls.model_fields.items()
        return frozenset(
            name
            for name, field in fields
            if any(map(_is_local, (field.annotation, *field.metadata)))
        )

    @classmethod
    def find_secret_files(cls, table: Mapping[str, Any], folder: Path) -> Iterator[Path]:
        """Yield the secret files that a table names; relative paths start at `folder`."""
        for name in cls.secret_fields():
            value = table.get(name)
            members = value.values() if isinstance(value, dict) else ()
            for reference in (value, *members):
                match reference:
                    case {"file": str(path), **rest} if not rest:
                        yield (folder / path).absolute()
        yield from _find_paths(table, ("client_key",), folder)

    @classmethod
    def find_start_files(cls, table: Mapping[str, Any], folder: Path) -> Iterator[Path]:
        """Yield the files that Tocsin reads only when a plugin starts: secrets and certificates.

        When one of these files changes, a running service restarts the plugin. Override this method
        to add further files.
        """
        yield from cls.find_secret_files(table, folder)
        yield from _find_paths(table, ("ca_file", "client_certificate"), folder)

    def targets(self) -> dict[str, str]:
        """Return the URL origins and host names to which secrets are sent, by field.

        Tocsin recognizes a URL by its value, even inside lists and tables, and a host or port by
        words in the field's name.
        """
        return find_targets(self)

    def own_hosts(self) -> frozenset[str]:
        """Return the hosts in fields annotated `ServerUrl`."""
        values = (
            getattr(self, name)
            for name, field in type(self).model_fields.items()
            if any(isinstance(mark, _OwnServer) for mark in field.metadata)
        )
        return frozenset(host for value in values if value and (host := urlsplit(value).hostname))
