"""Search documents: their tokens, and their storage in each database's index."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import accumulate, pairwise

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from tocsin.knowledge.search import tokens
from tocsin.knowledge.search.fields import entity_field
from tocsin.model import Entity
from tocsin.store.sequences import allot_numbers
from tocsin.store.statements import BulkStatement
from tocsin.store.tables import documents

MAX_WORDS = 12_000
"""So many words of a document are indexed; PostgreSQL counts no further than 16,383."""
MAX_REPEATS = 250
"""So often one word is; PostgreSQL keeps 256 places of each."""
MAX_TEXT = 200_000
"""So many characters of a document's text are kept."""
SPANS = (12, 14, 16, 18, 20, 22, 24)
"""PostgreSQL's index is asked for stretches of 2 to the power of these documents."""
_ROOM = 200_000  # bytes, of words and of marks each; PostgreSQL holds 1,048,575, pairs included
_LAST = 16_383  # the last place that PostgreSQL knows: that of all marks, and beyond the words
_BREAK = "_"  # between what no phrase shall reach across; never a word, since it is punctuation
_ENTITY_WORDS = 300  # characters of an entity that are split into words


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchDocument:
    """An incident or a session as it is searched for."""

    kind: str
    """`incident` or `session`."""
    record: str
    """The incident's number, or the session's id."""
    title: str
    text: str
    at: datetime
    """When it was; what `before:` and `after:` compare with, and what breaks ties."""
    facets: Mapping[str, str | None] = field(default_factory=dict)
    """What can be filtered by: `severity`, `status`, `provider`, `persona`, `verdict`."""
    entities: Sequence[Entity] = ()
    techniques: Sequence[str] = ()
    identifiers: Sequence[str] = ()
    """What else it is called, such as its number at the SIEM."""
    change: int | None = None
    """An incident's `change`, as it is indexed here."""


@dataclass(frozen=True, slots=True)
class DocumentTokens:
    """What a document is found by."""

    words: list[str]
    """In the order of the text."""
    marks: list[str]
    """Whole entities and facets, which have no place in it."""
    entities: list[str]


def span_tokens(number: int) -> list[str]:
    """Return the tokens of the stretches of documents that this one lies in."""
    return [span_token(shift, number >> shift) for shift in SPANS]


def span_token(shift: int, which: int) -> str:
    """Return the token of one stretch of documents."""
    return f"#{shift}:{which}"


def pair_token(first: str, second: str) -> str:
    """Return the token of two words one after the other.

    PostgreSQL's index knows no places: without it, it would look into every document with both.
    """
    return f"{first}+{second}"


def build_tokens(document: SearchDocument) -> DocumentTokens:
    """Return what a document is found by."""
    title, text = tokens.fold_text(document.title), tokens.fold_text(document.text[:MAX_TEXT])
    spoken = [*tokens.split_words(title), _BREAK, *tokens.split_words(text)]
    marks = dict.fromkeys([*tokens.entity_tokens(title), *tokens.entity_tokens(text)])
    entities: dict[str, None] = {}
    for name, value in _named(document):
        it = tokens.whole_token(value)
        entities.setdefault(it)
        marks.update(
            dict.fromkeys((it, tokens.field_token(name, value), *tokens.part_tokens(value)))
        )
        spoken += [_BREAK, *tokens.split_words(value[:_ENTITY_WORDS])]
    marks.update(dict.fromkeys(_facet_tokens({"kind": document.kind, **document.facets})))
    spoken = _bounded(spoken)
    rest = marks.keys() - set(spoken)
    return DocumentTokens(spoken, _within([mark for mark in marks if mark in rest]), list(entities))


def _named(document: SearchDocument) -> Iterable[tuple[str, str]]:
    """Return what has a value to be found by."""
    return (field_ for field_ in _list_fields(document) if tokens.whole_token(field_[1]))


def _list_fields(document: SearchDocument) -> Iterable[tuple[str, str]]:
    """Yield what has a value of its own to be found by, folded, with the field of it."""
    for entity in document.entities:
        yield entity_field(entity.kind), tokens.fold_text(entity.value).strip()
    for technique in document.techniques:
        folded = tokens.fold_text(technique).strip()
        yield "technique", folded
        if "." in folded:
            yield "technique", folded.partition(".")[0]
    for identifier in document.identifiers:
        yield "id", tokens.fold_text(identifier).strip()


def _facet_tokens(facets: Mapping[str, str | None]) -> list[str]:
    """Return the tokens of what can be filtered by."""
    return [
        tokens.field_token(name, tokens.fold_text(value)) for name, value in facets.items() if value
    ]


def _within(found: list[str]) -> list[str]:
    """Return as many of the tokens as there is room for."""
    if 4 * sum(map(len, found)) + 8 * len(found) <= _ROOM:
        return found
    ends = accumulate(len(token.encode()) + 8 for token in found)
    return [token for token, end in zip(found, ends, strict=True) if end <= _ROOM]


def _bounded(spoken: list[str]) -> list[str]:
    """Return as many of the words as are indexed, and none of them too often."""
    spoken = _within(spoken[:MAX_WORDS])
    if len(spoken) > MAX_REPEATS:
        seen: dict[str, int] = defaultdict(int)
        for place, word in enumerate(spoken):
            seen[word] += 1
            if seen[word] > MAX_REPEATS:
                spoken[place] = _BREAK
    return spoken


def to_fts5_text(made: DocumentTokens) -> str:
    """Return the tokens as FTS5 splits them, with no two marks where a phrase could join them."""
    marks = (f"{mark} {_BREAK}" if mark.isalnum() else mark for mark in made.marks)
    return " ".join([*made.words, _BREAK, *marks])


def to_tsvector(made: DocumentTokens, number: int) -> str:
    """Return the tokens as PostgreSQL writes a tsvector; `number` is the document's id."""
    places: dict[str, list[str]] = {}
    for place, word in enumerate(made.words, 1):
        places.setdefault(word, []).append(str(place))
    places.pop(_BREAK, None)
    pairs = {pair_token(*two) for two in pairwise(made.words) if _BREAK not in two}
    parts = [
        f"'{mark}':{_LAST}" for mark in (*span_tokens(number), *made.marks, *pairs - places.keys())
    ]
    parts += [f"'{word}':{','.join(at)}" for word, at in places.items()]
    return " ".join(parts)


DOCUMENT_ID = "document_id"
_NAMES = ("id", "kind", "record", "at", "change", "title", "entities", "text", "tokens")


def index_document(connection: Connection, document: SearchDocument) -> None:
    """Make a document findable, or findable as it is now."""
    index_documents(connection, [document])


def index_documents(connection: Connection, wanted: Sequence[SearchDocument]) -> None:
    """Index every one of the documents, which are different ones."""
    known = _ids(connection, wanted)
    old = [(known[it.kind, it.record], it) for it in wanted if (it.kind, it.record) in known]
    new = [it for it in wanted if (it.kind, it.record) not in known]
    # FTS5 takes rows in the order of their ids in one go
    old.sort(key=lambda pair: pair[0])
    postgres = connection.dialect.name == "postgresql"
    _changes.run(connection, [_row(number, it, postgres=postgres) for number, it in old])
    if new:
        numbers = allot_numbers(connection, DOCUMENT_ID, len(new))
        pairs = zip(numbers, new, strict=True)
        _additions.run(connection, [_row(number, it, postgres=postgres) for number, it in pairs])


def remove_document(connection: Connection, kind: str, record: str) -> None:
    """Forget a document; nothing happens where there is none."""
    connection.execute(
        delete(documents).where(documents.c.kind == kind, documents.c.record == record)
    )


_additions = BulkStatement(insert(documents), _NAMES)
_changes = BulkStatement(
    update(documents)
    .where(documents.c.id == bindparam("its_id"))
    .values({name: bindparam(f"to_{name}") for name in _NAMES[1:]}),
    ("its_id", *(f"to_{name}" for name in _NAMES[1:])),
)


def _ids(connection: Connection, wanted: Sequence[SearchDocument]) -> dict[tuple[str, str], int]:
    by_kind = defaultdict(list)
    for document in wanted:
        by_kind[document.kind].append(document.record)
    known: dict[tuple[str, str], int] = {}
    for kind, records in by_kind.items():
        rows = connection.execute(_known, {"kind": kind, "records": records})
        known |= {(kind, record): number for number, record in rows}
    return known


_known = select(documents.c.id, documents.c.record).where(
    documents.c.kind == bindparam("kind"),
    documents.c.record.in_(bindparam("records", expanding=True)),
)


def _row(number: int, document: SearchDocument, *, postgres: bool) -> tuple[object, ...]:
    made = build_tokens(document)
    indexed = to_tsvector(made, number) if postgres else to_fts5_text(made)
    return (
        number,
        document.kind,
        document.record,
        document.at,
        document.change,
        document.title,
        " ".join(made.entities),
        document.text[:MAX_TEXT],
        indexed,
    )
