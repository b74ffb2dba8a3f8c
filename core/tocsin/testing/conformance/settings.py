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
    """What can be told without the SIEM."""

    @rule
    async def test_an_unknown_setting_is_refused(self) -> None:
        """A setting that the provider does not have is refused.

        A misspelt setting that is passed over leaves the operator with what was not meant.
        """
        async with self.harness() as lab:
            with expect_raised(ValidationError, "a setting `x_unheard_of` was taken"):
                lab.checked_settings(x_unheard_of=1)

    @rule
    async def test_every_setting_has_a_description(self) -> None:
        """Every setting has a description.

        It is all that an operator is shown who left the setting out or got it wrong.
        """
        expect_descriptions(self.provider.Settings)

    @rule
    async def test_secrets_are_secret(self) -> None:
        """A setting whose name tells of a secret is annotated `SecretStr`.

        Plain text ends in logs, tracebacks and the output of `tocsin plugins`.
        """
        expect_secrets(self.provider.Settings)

    @rule
    async def test_secrets_are_not_printed(self) -> None:
        """A provider and its settings can be printed without showing a secret.

        Tracebacks and debuggers print both, into logs that many may read.
        """
        async with self.harness() as lab:
            expect_no_secret_shown(lab.provider)

    @rule
    async def test_nothing_is_done_before_the_start(self) -> None:
        """A provider is made without any input or output.

        Whoever only judges a configuration makes one, perhaps where nothing can be reached.
        """
        async with self.harness() as lab:
            settings, tools = lab.checked_settings(), lab.tools
            self.provider(settings, tools)  # which may import what it needs
            with forbid_io():
                self.provider(settings, tools)
            expect(not lab.http.count, "a request in the constructor")

    @rule
    async def test_streams_are_named_once_and_stay_the_same(self) -> None:
        """The names of the streams are distinct and the same each time.

        The position of each is kept under its name: one that changes begins anew.
        """
        async with self.harness() as lab:
            names, again = tuple(lab.provider.streams()), tuple((await lab.open()).streams())
            expect(len(set(names)) == len(names), f"the streams {names}")
            expect(names == again, f"{names} at one time, {again} at another")


def expect_descriptions(kind: type[PluginSettings]) -> None:
    """Return where every setting has a description."""
    fields = kind.model_fields
    bare = [name for name, field in fields.items() if not (field.description or "").strip()]
    expect(not bare, f"no description for {', '.join(bare)}")


def expect_secrets(kind: type[PluginSettings]) -> None:
    """Return where every setting is a secret whose name tells of one."""
    told = {name for name in kind.model_fields if _SECRET.search(name)}
    texts = {name for name in told if "str" in str(kind.model_fields[name].annotation).lower()}
    open_ones = sorted(texts - kind.secret_fields())
    expect(not open_ones, f"plain text: {', '.join(open_ones)}")


def expect_no_secret_shown(made: Provider | Enricher | Channel) -> None:
    """Return where no secret is printed with what has it."""
    printed = f"{made!r} {made!s} {made.settings!r}"
    shown = [name for name, secret in iter_secrets(made) if secret in printed]
    expect(not shown, f"the secret of `{', '.join(shown)}` in {printed}")


def iter_secrets(made: Provider | Enricher | Channel) -> Iterator[tuple[str, str]]:
    """Yield the names and values of the secrets in the settings of a provider or an enricher."""
    for name in sorted(made.settings.secret_fields()):
        match getattr(made.settings, name):
            case SecretStr() as secret if secret.get_secret_value():
                yield name, secret.get_secret_value()


@contextmanager
def expect_raised(kind: type[Exception], otherwise: str) -> Iterator[None]:
    """Expect an error of this kind; `otherwise` says what was seen where there is none."""
    try:
        yield
    except kind:
        return
    expect(kept=False, seen=otherwise)


@contextmanager
def forbid_io() -> Iterator[None]:
    """Have files, names and connections refuse to be opened meanwhile."""

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
