"""Rules of what an operator sets, and of how a provider begins."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn
from unittest.mock import patch

from pydantic import SecretStr, ValidationError

from tocsin.hookspecs import Provider
from tocsin.testing.conformance.base import Conformance
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
    """What can be told without the SIEM."""

    @rule
    async def test_an_unknown_setting_is_refused(self) -> None:
        """A setting that the provider does not have is refused.

        A misspelt setting that is passed over leaves the operator with what was not meant.
        """
        async with self.lab() as lab:
            with expected(ValidationError, "a setting `x_unheard_of` was taken"):
                lab.checked_settings(x_unheard_of=1)

    @rule
    async def test_every_setting_has_a_description(self) -> None:
        """Every setting has a description.

        It is all that an operator is shown who left the setting out or got it wrong.
        """
        fields = self.provider.Settings.model_fields
        bare = [name for name, field in fields.items() if not (field.description or "").strip()]
        expect(not bare, f"no description for {', '.join(bare)}")

    @rule
    async def test_secrets_are_secret(self) -> None:
        """A setting whose name tells of a secret is annotated `SecretStr`.

        Plain text ends in logs, tracebacks and the output of `tocsin plugins`.
        """
        kind = self.provider.Settings
        told = {name for name in kind.model_fields if _SECRET.search(name)}
        texts = {name for name in told if "str" in str(kind.model_fields[name].annotation).lower()}
        open_ones = sorted(texts - kind.secret_fields())
        expect(not open_ones, f"plain text: {', '.join(open_ones)}")

    @rule
    async def test_secrets_are_not_printed(self) -> None:
        """A provider and its settings can be printed without showing a secret.

        Tracebacks and debuggers print both, into logs that many may read.
        """
        async with self.lab() as lab:
            printed = f"{lab.provider!r} {lab.provider!s} {lab.provider.settings!r}"
            shown = [name for name, secret in secrets_of(lab.provider) if secret in printed]
            expect(not shown, f"the secret of `{', '.join(shown)}` in {printed}")

    @rule
    async def test_nothing_is_done_before_the_start(self) -> None:
        """A provider is made without any input or output.

        Whoever only judges a configuration makes one, perhaps where nothing can be reached.
        """
        async with self.lab() as lab:
            settings, tools = lab.checked_settings(), lab.tools
            self.provider(settings, tools)  # which may import what it needs
            with _no_input_or_output():
                self.provider(settings, tools)
            expect(not lab.http.count, "a request in the constructor")

    @rule
    async def test_streams_are_named_once_and_stay_the_same(self) -> None:
        """The names of the streams are distinct and the same each time.

        The position of each is kept under its name: one that changes begins anew.
        """
        async with self.lab() as lab:
            names, again = tuple(lab.provider.streams()), tuple((await lab.open()).streams())
            expect(len(set(names)) == len(names), f"the streams {names}")
            expect(names == again, f"{names} at one time, {again} at another")


def secrets_of(provider: Provider) -> Iterator[tuple[str, str]]:
    """Yield the names and values of the secrets in a provider's settings."""
    for name in sorted(provider.settings.secret_fields()):
        match getattr(provider.settings, name):
            case SecretStr() as secret if secret.get_secret_value():
                yield name, secret.get_secret_value()


@contextmanager
def expected(kind: type[Exception], otherwise: str) -> Iterator[None]:
    """Expect an error of this kind; `otherwise` says what was seen where there is none."""
    try:
        yield
    except kind:
        return
    expect(kept=False, seen=otherwise)


@contextmanager
def _no_input_or_output() -> Iterator[None]:
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
