"""Format-independent outline of a report: parts, blocks and inline elements."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tocsin.model import Section


@dataclass(frozen=True, slots=True)
class Values:
    """Values of entities, shown verbatim."""

    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """One word of a closed list, such as a severity, which may have its own color."""

    word: str


@dataclass(frozen=True, slots=True)
class Strong:
    """Emphasized words."""

    text: str


@dataclass(frozen=True, slots=True)
class Cited:
    """The evidence of a sentence: `step:12`, `incident:7`."""

    references: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference in the list that explains all references."""

    name: str


Inline = str | Values | Mark | Strong | Cited | Reference
Phrase = tuple[Inline, ...]  # with a space between each and the next


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Sentences."""

    phrase: Phrase


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    phrases: tuple[Phrase, ...]


@dataclass(frozen=True, slots=True)
class Facts:
    """Names, each with its value."""

    rows: tuple[tuple[str, Phrase], ...]


@dataclass(frozen=True, slots=True)
class TableColumn:
    """The head of a column."""

    title: str
    numeric: bool = False
    narrow: bool = False
    """Whether its cells are short and better left in one line."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows with a phrase for each column."""

    caption: str
    columns: tuple[TableColumn, ...]
    rows: tuple[tuple[Phrase, ...], ...]


@dataclass(frozen=True, slots=True)
class Card:
    """A block with its own heading: a finding."""

    name: str
    title: str
    blocks: tuple[Paragraph | Items | Facts, ...]


Block = Paragraph | Items | Facts | Table | Card


@dataclass(frozen=True, slots=True)
class ReportPart:
    """The content under one heading."""

    title: str
    blocks: tuple[Block, ...]
    section: Section | None = None
    """None for the parts that always come first."""


def list_citations(part: ReportPart) -> Iterator[tuple[str, str]]:
    """Yield the citations in a part, in order, each with the card or part it is in."""
    for block in part.blocks:
        place = block.name if isinstance(block, Card) else part.title
        for inline in _inlines(block):
            if isinstance(inline, Cited):
                yield from ((reference, place) for reference in inline.references)


def _inlines(block: Block) -> Iterator[Inline]:
    match block:
        case Paragraph(phrase):
            yield from phrase
        case Items(phrases):
            yield from (inline for phrase in phrases for inline in phrase)
        case Facts(rows):
            yield from (inline for _, phrase in rows for inline in phrase)
        case Table(rows=rows):
            yield from (inline for row in rows for phrase in row for inline in phrase)
        case Card(blocks=blocks):
            yield from (inline for each in blocks for inline in _inlines(each))
