"""What the audit log's page makes of an entry."""

from __future__ import annotations

import pytest

from tocsin.web.console.views.audit import format_details, link_to_target


@pytest.mark.parametrize(
    ("target", "place"),
    [
        ("destination:soar", "/destinations/soar"),
        ("destination:a/../b", "/destinations/a%2F..%2Fb"),
        ("replay:rpl_1", None),
        ("admin:ana", None),
        ("key:", None),
        (None, None),
    ],
)
def test_what_has_a_page_is_linked(target, place):
    assert link_to_target(target) == place


def test_details_are_told_in_words():
    details = {"expires_at": "x", "scopes": ["a", "b"], "kept": True, "gone": None, "in": {"a": 1}}
    assert list(format_details(details)) == [
        ("expires at", "x"),
        ("scopes", "a, b"),
        ("kept", "yes"),
        ("gone", "none"),
        ("in", '{"a":1}'),
    ]
