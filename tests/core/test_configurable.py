"""Settings of plugin classes, and what a type checker knows of them."""

from __future__ import annotations

import os
import sys

import pytest
from mypy import api

from tocsin import CaseChannel, Channel, Enricher, Provider, PushProvider, WindowedProvider

KINDS = [Provider, WindowedProvider, PushProvider, Channel, CaseChannel, Enricher]
PLUGIN = """
from tocsin import Channel, Provider, WindowedProvider


class AcmeSettings(WindowedProvider.Settings):
    tenant: str = ""


class Acme(WindowedProvider[AcmeSettings]):
    def tenant(self) -> str:
        return self.settings.tenant

    def nope(self) -> object:
        return self.settings.nope


class PagerSettings(Channel.Settings):
    token: str = ""


class Pager(Channel[PagerSettings]):
    def nope(self) -> object:
        return self.settings.nope


class Untyped(Provider):
    def any(self) -> object:
        return self.settings.whatever


def kinds() -> tuple[type[Provider], type[Provider], type[Channel]]:
    return Acme, Untyped, Pager
"""


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_the_type_argument_is_the_class_of_settings(kind):
    class Settings(kind.Settings):
        pass

    class Plugin(kind[Settings]):
        pass

    class Derived(Plugin):
        pass

    assert Plugin.Settings is Derived.Settings is Settings
    assert kind.Settings is not Settings


@pytest.mark.full
def test_a_setting_that_does_not_exist_is_a_type_error(tmp_path):
    plugin = tmp_path / "plugin.py"
    plugin.write_text(PLUGIN)
    cache = os.devnull
    output, errors, _ = api.run(
        ["--strict", "--cache-dir", cache, "--python-executable", sys.executable, str(plugin)]
    )
    found = [line.partition("error: ")[2] for line in output.splitlines() if "error:" in line]
    missing = 'has no attribute "nope"  [attr-defined]'
    assert errors == ""
    assert found == [f'"AcmeSettings" {missing}', f'"PagerSettings" {missing}']
