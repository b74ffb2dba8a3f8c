"""Receivers page: every shipped receiver, as in its contract."""

from __future__ import annotations

import re
import tomllib

import pytest

from receiver_pages import ALL, LIST, PAGES, PICTURES, page, rows
from receiver_previews import LARGEST, preview
from receiver_previews import RECEIVERS as DRAWN
from receiver_samples import SAMPLES


def test_every_receiver_is_listed_as_its_contract_has_it():
    listed = re.findall(r"^\| `.*\n", LIST.read_text(encoding="utf-8"), re.MULTILINE)
    assert [row for row in listed if "](receivers/" in row] == rows().splitlines(keepends=True)


@pytest.mark.parametrize("receiver", ALL)
def test_the_page_of_a_receiver_is_current(receiver):
    written = (PAGES / f"{receiver}.md").read_text(encoding="utf-8")
    assert written == page(receiver), "run `python tests/receiver_pages.py`"
    destination = written.partition("```toml\n")[2].partition("```")[0]
    assert tomllib.loads(destination)["destinations"][receiver]["template"] == receiver


def test_there_is_no_page_without_a_receiver():
    assert sorted(path.stem for path in PAGES.glob("*.md")) == ALL


def test_every_chat_has_a_small_picture():
    mails = ["email-dark", "email-light"]
    assert sorted(path.stem for path in PICTURES.iterdir()) == sorted([*DRAWN, *mails])
    for receiver in DRAWN:
        picture = (PICTURES / f"{receiver}.png").read_bytes()
        assert picture.startswith(b"\x89PNG")
        assert len(picture) < LARGEST, "run `python tests/receiver_previews.py`"


@pytest.mark.parametrize("receiver", DRAWN)
def test_a_preview_shows_what_is_sent(receiver):
    page = preview(receiver, *SAMPLES)
    for word in ("Many failed sign-ins", "203.0.113.7", "72 of 100", "5 failures in a row"):
        assert word in page
