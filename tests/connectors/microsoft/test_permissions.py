"""Permissions from the roles that Azure returns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin_connectors.microsoft.resources import find_missing_actions

READ = "Microsoft.SecurityInsights/incidents/read"
QUERY = "Microsoft.OperationalInsights/workspaces/query/read"
COMMENT = "Microsoft.SecurityInsights/incidents/comments/write"
NEEDED = (READ, QUERY, COMMENT)


@pytest.mark.parametrize(
    ("roles", "missing"),
    [
        ([], NEEDED),
        ([{"actions": ["*"]}], ()),
        ([{"actions": ["*"], "notActions": []}], ()),
        ([{"actions": ["*/read"]}], (COMMENT,)),
        ([{"actions": ["microsoft.securityinsights/INCIDENTS/*"]}], (QUERY,)),
        ([{"actions": ["*"], "notActions": ["Microsoft.SecurityInsights/*/write"]}], (COMMENT,)),
        ([{"actions": ["*"], "notActions": ["*/incidents/*"]}], (READ, COMMENT)),
        ([{"actions": ["*"], "notActions": [COMMENT]}, {"actions": [COMMENT]}], ()),
        ([{"actions": ["*/read"], "notActions": []}, {"actions": [COMMENT]}], ()),
        ([{"dataActions": ["*"]}, "odd"], NEEDED),
    ],
)
def test_action_is_allowed_unless_its_role_excludes_it(roles, missing):
    assert tuple(find_missing_actions(roles, NEEDED)) == missing


@given(roles=st.lists(st.none() | st.integers() | st.dictionaries(st.text(), st.text())))
def test_malformed_roles_allow_nothing(roles):
    assert tuple(find_missing_actions(roles, NEEDED)) == NEEDED
