"""What the references of a report stand for, and where they are cited."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tocsin.model import Section
from tocsin.reports.blocks import SHOWN, several, table
from tocsin.reports.outline import Column, Paragraph, Part, Reference, citations


def evidence(cited: Iterable[Part], meanings: Mapping[str, str]) -> Part:
    """Return the part that explains what is cited in others, in the order it is cited."""
    places: dict[str, dict[str, None]] = {}
    for part in cited:
        for reference, place in citations(part):
            places.setdefault(reference, {})[place] = None
    columns = (Column("Reference", narrow=True), Column("What it is"), Column("Cited in"))
    rows = tuple(
        ((Reference(reference),), (_meaning(reference, meanings),), (several(places[reference]),))
        for reference in list(places)[:SHOWN]
    )
    blocks = table("What the references stand for", columns, rows, len(places))
    return Part("Evidence", blocks or (Paragraph(("None.",)),), Section.EVIDENCE)


def _meaning(reference: str, meanings: Mapping[str, str]) -> str:
    if reference in meanings:
        return meanings[reference]
    kind, _, name = reference.partition(":")
    match kind:
        case "step":
            return f"Step {name} of this session's ledger"
        case "incident":
            return f"Incident number {name}, as it is kept here"
    return reference
