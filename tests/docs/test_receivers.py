"""The page of receivers lists each that ships, as its contract has it."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

import tocsin_templates
from receiver_pages import PAGES, RECEIVERS, page
from tocsin.contracts import load_contract

PAGE = Path(__file__).parents[2] / "docs/soar/receivers.md"
[FOLDER] = map(Path, tocsin_templates.tocsin_template_paths())


def row(receiver: str) -> str:
    contract = load_contract([FOLDER], receiver)
    named = f"[{contract.name}](receivers/{receiver}.md)"
    return f"| `{receiver}` | {named} | {contract.idempotency} | {contract.tested} |"


def test_every_receiver_is_listed_as_its_contract_has_it():
    receivers = sorted(it.name for it in FOLDER.iterdir() if it.is_dir() and it.name[0] not in "_.")
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line[:3] == "| `"]
    assert [line for line in lines if line != "| `template` |"][-len(receivers) :] == [
        row(receiver) for receiver in receivers
    ]


@pytest.mark.parametrize("receiver", RECEIVERS)
def test_the_page_of_a_receiver_is_current(receiver):
    written = (PAGES / f"{receiver}.md").read_text(encoding="utf-8")
    assert written == page(receiver), "run `python -m tests.receiver_pages`"
    destination = written.partition("```toml\n")[2].partition("```")[0]
    assert tomllib.loads(destination)["destinations"][receiver]["template"] == receiver


def test_there_is_no_page_without_a_receiver():
    assert sorted(it.stem for it in PAGES.glob("*.md")) == RECEIVERS
