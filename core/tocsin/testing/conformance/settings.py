"""Rules for provider settings and startup."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn
from unittest.mock import patch

from pydantic import SecretStr, ValidationError

from tocsin.fields import PluginSettings
from tocsin.hookspecs import Channel, Enricher, Provider
from tocsin.testing.conformance.harness import Conformance
from tocsin.testing.conformance.rules import expect, rule

_SECRET = re.compile(r"(^|_)(apikey|credential|passphrase|password|secret|token)s?($|_)|api_key")
_INPUT_OUTPUT = (
    "builtins.open",
    "io.open",
    "os.open",
    "os.listdir",
    "os.stat",
    "socket.getaddrinfo",
    "socket.socket.connect",
    "subprocess.Popen",
)


class SettingsRules(Conformance):
    """Rules that need no SIEM."""

    @rule
    async def test_an_unknown_setting_is_refused(self) -> None:
        """An unknown setting is rejected.

        Otherwise, a misspelled setting is silently ignored.
        """
        async with self.harness() as harness:
            with expect_raised(ValidationError, "the setting `x_unheard_of` was accepted"):
                harness.checked_settings(x_unheard_of=1)

    @rule
    async def test_every_setting_has_a_description(self) -> None:
        """Every setting has a description.

        When a setting is missing or wrong, operators see its description in the error message.
        """
        expect_descriptions(self.provider.Settings)

    @rule
    async def test_secrets_are_secret(self) -> None:
        """Settings whose names suggest a secret are annotated `SecretStr`.

        Otherwise, secrets appear in logs, tracebacks and the output of `tocsin plugins`.
        """
        expect_secrets(self.provider.Settings)

    @rule
    async def test_secrets_are_not_printed(self) -> None:
        """A provider and its settings do not show secrets when they are printed.

        Tracebacks in logs can show the provider and its settings, and many people can read logs.
        """
        async with self.harness() as harness:
            expect_no_secret_shown(harness.provider)

    @rule
    async def test_the_constructor_does_no_io(self) -> None:
        """A provider's constructor does not perform I/O.

        Tocsin also creates providers to check the configuration, possibly on machines without
        network access.
        """
        async with self.harness() as harness:
            settings, tools = harness.checked_settings(), harness.tools
            self.provider(settings, tools)  # the first call may import modules
            with forbid_io():
                self.provider(settings, tools)
            expect(not harness.http.count, "a request in the constructor")

    @rule
    async def test_stream_names_are_distinct_and_constant(self) -> None:
        """Stream names are distinct and constant.

        Tocsin stores each stream's position under the stream's name. If the name changed, Tocsin
        would not find the position.
        """
        async with self.harness() as harness:
            names, again = (
                tuple(harness.provider.streams()),
                tuple((await harness.open()).streams()),
            )
            expect(len(set(names)) == len(names), f"the streams {names}")
            expect(names == again, f"first {names}, then {again}")


def expect_descriptions(kind: type[PluginSettings]) -> None:
    """Check that every setting has a description."""
    fields = kind.model_fields
    bare = [name for name, field in fields.items() if not (field.description or "").strip()]
    expect(not bare, f"no description for {', '.join(bare)}")


def expect_secrets(kind: type[PluginSettings]) -> None:
    """Check that every setting with a secret's name is a secret."""
    secret_names = {name for name in kind.model_fields if _SECRET.search(name)}
    texts = {
        name for name in secret_names if "str" in str(kind.model_fields[name].annotation).lower()
    }
    open_ones = sorted(texts - kind.secret_fields())
    expect(not open_ones, f"plain text: {', '.join(open_ones)}")


def expect_no_secret_shown(made: Provider | Enricher | Channel) -> None:
    """Check that printing an object shows no secret."""
    printed = f"{made!r} {made!s} {made.settings!r}"
    shown = [name for name, secret in iter_secrets(made) if secret in printed]
    expect(not shown, f"the secret `{', '.join(shown)}` in {printed}")


def expect_no_secret_sent(made: Enricher | Channel, urls: str) -> None:
    """Check that the requested URLs, as one text, contain no secret."""
    shown = [name for name, secret in iter_secrets(made) if secret in urls]
    expect(not shown, f"the secret `{', '.join(shown)}` in a URL")


def iter_secrets(made: Provider | Enricher | Channel) -> Iterator[tuple[str, str]]:
    """Yield the names and values of the secrets in an object's settings."""
    for name in sorted(made.settings.secret_fields()):
        match getattr(made.settings, name):
            case SecretStr() as secret if secret.get_secret_value():
                yield name, secret.get_secret_value()


@contextmanager
def expect_raised(kind: type[Exception], otherwise: str) -> Iterator[None]:
    """Expect an error of this type; `otherwise` describes what happened instead."""
    try:
        yield
    except kind:
        return
    expect(kept=False, seen=otherwise)


@contextmanager
def forbid_io() -> Iterator[None]:
    """Make opening files, resolving names and connecting fail."""

    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise OSError("input or output in the constructor")

    patches = [patch(name, refuse) for name in _INPUT_OUTPUT]
    for each in patches:
        each.start()
    try:
        yield
    finally:
        for each in patches:
            each.stop()
