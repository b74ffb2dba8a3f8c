"""The description of each setting stands alone, wherever it is shown without its neighbors."""

from __future__ import annotations

import re

import pytest

from tocsin.registry import installed_plugins
from tocsin.registry.loader import load_plugins
from tocsin.settings import Settings

_SENTENCE = re.compile(r"[A-Z`0-9].*\.", re.DOTALL)


def list_unclear(settings) -> list[str]:
    fields = settings.model_fields.items()
    return [name for name, field in fields if not _SENTENCE.fullmatch(field.description or "")]


@pytest.mark.parametrize("plugin", installed_plugins(), ids=lambda plugin: plugin.name)
async def test_a_plugins_settings_are_described_in_sentences(plugin):
    offers = await load_plugins([plugin])
    enrichers = [kind for kinds in offers.enrichers.values() for kind in kinds]
    kinds = (offers.providers, offers.channels, offers.investigators)
    for kind in (*(kind for found in kinds for kind in found.values()), *enrichers):
        assert list_unclear(kind.Settings) == [], kind


def test_the_settings_of_the_service_are_described_in_sentences():
    assert list_unclear(Settings) == []
