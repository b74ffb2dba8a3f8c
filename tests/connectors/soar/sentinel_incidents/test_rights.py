"""What the roles of an app allow."""

from __future__ import annotations

import pytest

from tocsin_connectors.soar.sentinel_incidents.rights import NEEDED, lacking

READ, WRITE, READ_COMMENTS, WRITE_COMMENTS = NEEDED
RESPONDER = [
    "Microsoft.SecurityInsights/*/read",
    "Microsoft.SecurityInsights/incidents/*",
]


@pytest.mark.parametrize(
    ("roles", "missing"),
    [
        ([], NEEDED),
        ([{"actions": ["*"]}], ()),
        ([{"actions": RESPONDER, "notActions": []}], ()),
        ([{"actions": ["*/read"]}], (WRITE, WRITE_COMMENTS)),
        ([{"actions": ["microsoft.securityinsights/INCIDENTS/*"]}], ()),
        ([{"actions": ["*"], "notActions": ["*/comments/*"]}], (READ_COMMENTS, WRITE_COMMENTS)),
        ([{"actions": ["*"], "notActions": [WRITE]}, {"actions": [WRITE]}], ()),
        ([{"dataActions": ["*"]}, "odd"], NEEDED),
    ],
)
def test_an_action_is_allowed_by_any_role_that_does_not_except_it(roles, missing):
    assert tuple(lacking(roles)) == missing
