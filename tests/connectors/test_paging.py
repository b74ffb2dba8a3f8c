"""Page tokens, of which nothing may be lost."""

from __future__ import annotations

import pytest

from tocsin import Broken
from tocsin_connectors.siem.records import get_page_token


@pytest.mark.parametrize("token", ["a", " a b ", "t" * 10_000])
def test_a_token_is_handed_back_as_it_came(token):
    assert get_page_token({"after": token}, "after") == token


@pytest.mark.parametrize("answer", [{}, {"after": None}, {"after": ""}])
def test_without_a_token_there_are_no_more_pages(answer):
    assert get_page_token(answer, "after") is None


@pytest.mark.parametrize("token", [7, 0, False, ["a"], {}])
def test_what_is_no_token_is_not_taken_for_the_end(token):
    with pytest.raises(Broken, match="`after`"):
        get_page_token({"after": token}, "after")
