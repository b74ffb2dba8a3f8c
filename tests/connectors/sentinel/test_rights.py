"""What an app's roles allow, as Azure tells it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin_connectors.siem.sentinel.rights import COMMENT, QUERY, READ, lacking

NEEDED = (READ, QUERY, COMMENT)


@pytest.mark.parametrize(
    ("roles", "missing"),
    [
        ([], NEEDED),
        ([{"actions": ["*"], "notActions": []}], ()),
        ([{"actions": ["*/read"]}], (COMMENT,)),
        ([{"actions": ["microsoft.securityinsights/*"]}], (QUERY,)),
        ([{"actions": ["*"], "notActions": ["Microsoft.SecurityInsights/*/write"]}], (COMMENT,)),
        ([{"actions": ["*/read"], "notActions": []}, {"actions": [COMMENT]}], ()),
    ],
)
def test_what_no_role_allows_is_lacking(roles, missing):
    assert tuple(lacking(roles, NEEDED)) == missing


@given(roles=st.lists(st.none() | st.integers() | st.dictionaries(st.text(), st.text())))
def test_roles_of_any_form_allow_nothing(roles):
    assert tuple(lacking(roles, NEEDED)) == NEEDED
