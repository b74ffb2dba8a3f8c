"""Where a reference of a report leads."""

from __future__ import annotations

import pytest

from tocsin.web.console.citations import link_to_reference


@pytest.mark.parametrize(
    ("reference", "place"),
    [
        ("step:12", "/investigations/ses_1/steps/12"),
        ("incident:7", "/incidents/7"),
        ("enricher:rdap", None),
        ("step:../../x", None),
        ("incident:", None),
        ("step:²", None),
        ("javascript:1", None),
    ],
)
def test_a_reference_leads_only_to_what_has_a_page(reference, place):
    assert link_to_reference("ses_1", reference) == place
