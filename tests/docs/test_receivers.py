"""The page of receivers lists each that ships, as its contract has it."""

from __future__ import annotations

from pathlib import Path

import tocsin_templates
from tocsin.contracts import load_contract

PAGE = Path(__file__).parents[2] / "docs/soar/receivers.md"
[FOLDER] = map(Path, tocsin_templates.tocsin_template_paths())


def row(receiver: str) -> str:
    contract = load_contract([FOLDER], receiver)
    named = f"[{contract.name}]({contract.documentation})"
    return f"| `{receiver}` | {named} | {contract.idempotency} | {contract.tested} |"


def test_every_receiver_is_listed_as_its_contract_has_it():
    receivers = sorted(it.name for it in FOLDER.iterdir() if it.is_dir() and it.name[0] not in "_.")
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line[:3] == "| `"]
    assert [line for line in lines if line != "| `template` |"][-len(receivers) :] == [
        row(receiver) for receiver in receivers
    ]
