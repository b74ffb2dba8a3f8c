"""What the references of a report stand for, and where they are cited."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tocsin.model import Section
from tocsin.reports.blocks import SHOWN, several, table
from tocsin.reports.outline import Paragraph, Reference, ReportPart, TableColumn, list_citations


def build_evidence(cited: Iterable[ReportPart], meanings: Mapping[str, str]) -> ReportPart:
    """Return the part that explains what is cited in others, in the order it is cited."""
    places: dict[str, dict[str, None]] = {}
    for part in cited:
        for reference, place in list_citations(part):
            places.setdefault(reference, {})[place] = None
    columns = (
        TableColumn("Reference", narrow=True),
        TableColumn("What it is"),
        TableColumn("Cited in"),
    )
    rows = tuple(
        (
            (Reference(reference),),
            (_describe_reference(reference, meanings),),
            (several(places[reference]),),
        )
        for reference in list(places)[:SHOWN]
    )
    blocks = table("What the references stand for", columns, rows, len(places))
    return ReportPart("Evidence", blocks or (Paragraph(("None.",)),), Section.EVIDENCE)


def _describe_reference(reference: str, meanings: Mapping[str, str]) -> str:
    if reference in meanings:
        return meanings[reference]
    kind, _, name = reference.partition(":")
    match kind:
        case "step":
            return f"Step {name} of this session's ledger"
        case "incident":
            return f"Incident number {name}, as it is kept here"
    return reference
