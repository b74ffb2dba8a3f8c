"""Reading of the settings from the environment and its secret files, with every problem at once."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from pydantic import ValidationError

from tocsin.errors import ConfigurationError, ConfigurationProblem
from tocsin.fields import read_secret_file
from tocsin.settings.model import FILE_SUFFIX, PREFIX, SECRETS, Settings
from tocsin.validation import explain_errors, suggest_nearest

CALLERS = {f"{PREFIX}URL", f"{PREFIX}ADMIN_TOKEN", f"{PREFIX}API_KEY"}
"""Variables of API callers, which are not settings of the service."""

_LOOPBACK = re.compile(r"http://(localhost|127(\.[0-9]+){3}|\[::1\])([:/]|$)")


def _find_misspelled() -> list[ConfigurationProblem]:
    """Return a problem for each variable that is almost the name of a setting."""
    known = [name.upper() for name in Settings.model_fields]
    known += [name.upper() + FILE_SUFFIX for name in SECRETS]
    given = [name.removeprefix(PREFIX) for name in os.environ if name.startswith(PREFIX)]
    own = {name.removeprefix(PREFIX) for name in CALLERS}.union(known)
    # compared without the prefix, which would make any two names similar
    return [
        ConfigurationProblem("environment", PREFIX + name, "unknown setting", f"remove it{hint}")
        for name in given
        if name not in own
        and (
            hint := suggest_nearest(name, _select_similar(name, known)).replace(
                "'", f"'{PREFIX}", 1
            )
        )
    ]


def _select_similar(name: str, known: Sequence[str]) -> list[str]:
    """Return the names with a similar first word: JIRA_CLIENT_SECRET is the operator's own."""
    first = name.partition("_")[0]
    return [other for other in known if suggest_nearest(first, [other.partition("_")[0]])]


def _find_conflicts(settings: Settings) -> Iterator[ConfigurationProblem]:
    """Yield a problem for each setting that conflicts with another."""
    if settings.is_exposed:
        yield ConfigurationProblem(
            "environment",
            f"{PREFIX}HOST",
            f"found {settings.host!r}, where credentials would be sent unencrypted",
            f"listen on 127.0.0.1, or terminate TLS in front of Tocsin and set "
            f"{PREFIX}BASE_URL to the https:// address or {PREFIX}TLS_TERMINATED=true",
        )
    if settings.listens_everywhere and not settings.base_url:
        yield ConfigurationProblem(
            "environment",
            f"{PREFIX}BASE_URL",
            f"not set, so links would point to {settings.host}, which other machines cannot reach",
            "set it to the external URL, such as https://tocsin.example.org",
        )
    if settings.oidc_issuer.startswith("http://") and not _LOOPBACK.match(settings.oidc_issuer):
        yield ConfigurationProblem(
            "environment",
            f"{PREFIX}OIDC_ISSUER",
            "found an issuer without TLS, whose keys could be replaced in transit",
            "use an https:// URL",
        )
    if settings.event_loop == "uvloop" and find_spec("uvloop") is None:
        yield ConfigurationProblem(
            "environment",
            f"{PREFIX}EVENT_LOOP",
            "found 'uvloop', which is not installed",
            "install it with `pip install 'tocsin[uvloop]'`, or use 'asyncio'",
        )
    yield from _find_oidc_conflicts(settings)


def _find_oidc_conflicts(settings: Settings) -> Iterator[ConfigurationProblem]:
    purposes = settings.oidc_audience or settings.oidc_client_id
    if settings.oidc_issuer and not purposes:
        yield ConfigurationProblem(
            "environment",
            f"{PREFIX}OIDC_AUDIENCE",
            f"not set, but {PREFIX}OIDC_ISSUER is",
            f"set {PREFIX}OIDC_AUDIENCE to accept access tokens, {PREFIX}OIDC_CLIENT_ID to allow "
            "sign-in to the console, or both",
        )
    if purposes and not settings.oidc_issuer:
        given = "AUDIENCE" if settings.oidc_audience else "CLIENT_ID"
        yield ConfigurationProblem(
            "environment",
            f"{PREFIX}OIDC_ISSUER",
            f"not set, but {PREFIX}OIDC_{given} is",
            "set both or neither",
        )
    if settings.oidc_client_secret is not None and not settings.oidc_client_id:
        yield ConfigurationProblem(
            "environment",
            f"{PREFIX}OIDC_CLIENT_ID",
            f"not set, but {PREFIX}OIDC_CLIENT_SECRET is",
            "set both or neither",
        )


def _read_secret_files() -> tuple[dict[str, str], dict[str, Path], list[ConfigurationProblem]]:
    """Return the secrets in files, the files, and a problem for each that cannot be used."""
    secrets: dict[str, str] = {}
    files: dict[str, Path] = {}
    problems: list[ConfigurationProblem] = []
    for name in SECRETS:
        variable = PREFIX + name.upper()
        if not (given := os.environ.get(variable + FILE_SUFFIX)):
            continue
        files[name] = Path(given).absolute()
        if os.environ.get(variable):
            found, expected = f"found both this setting and {variable}", "set only one of them"
        else:
            try:
                secrets[name] = read_secret_file(files[name])
                continue
            except ValueError as error:
                found, expected = f"found {given!r}", str(error)
        problems.append(
            ConfigurationProblem("environment", variable + FILE_SUFFIX, found, expected)
        )
    return secrets, files, problems


def load_settings() -> Settings:
    """Return the settings; raises ConfigurationError with all problems at once.

    Each secret is read from its variable, or from the file that the variable with `_FILE` names.
    """
    secrets, files, problems = _read_secret_files()
    problems += _find_misspelled()
    try:
        settings = Settings(**secrets)  # type: ignore[arg-type]
        settings.note_secret_files(files)
        problems += _find_conflicts(settings)
    except ValidationError as error:
        problems += [
            ConfigurationProblem(
                "environment", PREFIX + mistake.path[0].upper(), mistake.found, mistake.expected
            )
            for mistake in explain_errors(error, Settings)
        ]
    if problems:
        raise ConfigurationError(problems)
    return settings
