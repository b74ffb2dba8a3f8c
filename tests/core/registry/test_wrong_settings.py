"""Whatever stands in `plugins.toml`, what is wrong with a setting is said, and nothing crashes."""

from __future__ import annotations

from contextlib import suppress

import pytest
from pydantic import ValidationError

from tocsin.fields import SettingsOrigin
from tocsin.registry import installed_plugins
from tocsin.registry.loader import load_plugins

VALUES = (3, -1, 2.5, True, "", "x", "x\0y", [], [3], ["x"], [[]], {}, {"x": 3}, {"x": {"y": []}})


@pytest.mark.parametrize("plugin", installed_plugins(), ids=lambda plugin: plugin.name)
async def test_a_value_of_any_type_is_taken_or_refused(plugin):
    offers = await load_plugins([plugin])
    enrichers = [kind for kinds in offers.enrichers.values() for kind in kinds]
    kinds = (offers.providers, offers.channels, offers.investigators)
    for kind in (*(kind for found in kinds for kind in found.values()), *enrichers):
        for name in kind.Settings.model_fields:
            for value in VALUES:
                with suppress(ValidationError):
                    kind.Settings.model_validate({name: value}, context=SettingsOrigin().context())
