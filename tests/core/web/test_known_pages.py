"""Pages of lists that are kept: each in its state, and a bounded number of bytes."""

from __future__ import annotations

from tocsin.web.known_pages import _LONGEST, _SIZE, DirectAnswer, KnownPages

ANSWER = DirectAnswer(b"{}", "1")


def test_a_page_is_stable_once_it_was_read_twice_in_one_state():
    pages, seen = KnownPages(), []
    for state in (1, 2, 2, 3):
        pages.add("/a", state, ANSWER)
        seen.append(pages.is_stable("/a"))
    assert seen == [False, False, True, False]


def test_a_page_of_another_state_is_forgotten():
    pages = KnownPages()
    pages.add("/a", 1, ANSWER)
    assert pages.recall("/a", 1) is ANSWER
    assert pages.recall("/a", 2) is None
    assert pages.recall("/a", 1) is None


def test_large_pages_and_the_least_recently_used_are_not_kept():
    pages = KnownPages()
    pages.add("/large", 1, DirectAnswer(b"x" * (_LONGEST + 1), "1"))
    assert pages.recall("/large", 1) is None
    for number in range(_SIZE):
        pages.add(f"/{number}", 1, ANSWER)
    pages.recall("/0", 1)
    pages.add("/more", 1, ANSWER)
    assert pages.recall("/0", 1) is ANSWER
    assert pages.recall("/1", 1) is None
