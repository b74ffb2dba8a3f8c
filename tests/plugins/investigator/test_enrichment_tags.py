"""Tags of enrichments in reports."""

from __future__ import annotations

import pytest

from tocsin import Enrichment, Entity, EntityKind
from tocsin_plugins.investigator.report.entities import _describe_tags


@pytest.mark.parametrize(
    ("summary", "tags", "shown"),
    [
        ("seen in scans", (), ""),
        ("seen in scans", ("scans", "tor"), " (tags: tor)"),
        ("seen", ("known-by-association",), ""),
        ("seen", tuple("abcdfghij"), " (tags: a, b, c, d, f, g, h, i)"),
    ],
)
def test_a_report_names_the_tags_that_the_summary_does_not(summary, tags, shown):
    entity = Entity(EntityKind.IP, "192.0.2.1")
    found = Enrichment(entity=entity, summary=summary.replace("seen", "met"), tags=tags)
    assert _describe_tags(found) == shown
