"""Search documents: their tokens, and their storage in each database's index."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from itertools import accumulate, pairwise

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from tocsin.knowledge.search import tokens
from tocsin.knowledge.search.fields import entity_field
from tocsin.model import Entity
from tocsin.store import BulkStatement, allot_numbers, is_in, load_last_allotted
from tocsin.store.tables import documents, sequences

MAX_WORDS = 12_000
"""Number of words indexed per document; PostgreSQL stores positions up to 16,383."""
MAX_REPEATS = 250
"""Number of positions indexed per word; PostgreSQL stores 256."""
MAX_TEXT = 200_000
"""Number of characters stored of a document's text."""
SPANS = (12, 14, 16, 18, 20, 22, 24)
"""Exponents of the block sizes (2**n documents) in which PostgreSQL's index is searched."""
PREFIX_SPAN = SPANS[0]
"""The exponent of the blocks whose tokens are indexed once more, for prefixes."""
DOCUMENT_ID = "document_id"
WITHOUT_PREFIXES = "documents_without_prefixes"
"""Sequence of the last document that may lack the tokens for prefixes on PostgreSQL."""
_ROOM = 170_000  # bytes, of words and of marks each; PostgreSQL holds 1,048,575 with all the others
_PLACE_OF_BLOCK = "\0"  # in the text of tokens, until the ID of the document is known
_LAST = 16_383  # the last position in PostgreSQL: that of all marks, beyond the words
_BREAK = "_"  # separates parts that no phrase may span; never a word, since it is punctuation
_ENTITY_WORDS = 300  # characters of an entity that are split into words


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchDocument:
    """An incident or session as the index stores it."""

    kind: str
    """`incident` or `session`."""
    record: str
    """The incident's number, or the session's ID."""
    title: str
    text: str
    at: datetime
    """Its time, which `before:` and `after:` compare with and which breaks ties."""
    facets: Mapping[str, str | None] = field(default_factory=dict)
    """Values to filter by: `severity`, `status`, `provider`, `persona`, `verdict`."""
    entities: Sequence[Entity] = ()
    techniques: Sequence[str] = ()
    identifiers: Sequence[str] = ()
    """Other identifiers, such as its number at the SIEM."""
    change: int | None = None
    """The `change` of the incident that this document reflects."""


@dataclass(frozen=True, slots=True)
class DocumentTokens:
    """The tokens by which a document is found."""

    words: list[str]
    """In the order of the text."""
    marks: list[str]
    """Whole entities and facets, which have no position in the text."""
    entities: list[str]


@dataclass(frozen=True, slots=True)
class TokenizedDocument:
    """A document and the text of its tokens for one kind of database."""

    document: SearchDocument
    entities: str
    tokens: str


def tokenize_document(document: SearchDocument, *, postgres: bool) -> TokenizedDocument:
    """Return a document with its tokens; this takes most of the time of indexing it."""
    made = build_tokens(document)
    text = to_tsvector(made) if postgres else to_fts5_text(made)
    return TokenizedDocument(document, " ".join(made.entities), text)


def index_document(connection: Connection, document: SearchDocument) -> None:
    """Index a document, or update it in the index."""
    index_documents(connection, [document])


def index_documents(connection: Connection, wanted: Sequence[SearchDocument]) -> None:
    """Index several different documents."""
    postgres = uses_tsvector(connection)
    known = _load_ids(connection, wanted)
    store_tokenized(
        connection, [tokenize_document(each, postgres=postgres) for each in wanted], known
    )


def uses_tsvector(connection: Connection) -> bool:
    """Return whether the database indexes the tokens as a tsvector, not with FTS5."""
    return connection.dialect.name == "postgresql"


def store_tokenized(
    connection: Connection,
    wanted: Sequence[TokenizedDocument],
    known: Mapping[tuple[str, str], int],
) -> None:
    """Index several different documents; `known` are the IDs of those in the index."""
    numbered = [(known.get((each.document.kind, each.document.record)), each) for each in wanted]
    old = [(number, each) for number, each in numbered if number is not None]
    new = [each for number, each in numbered if number is None]
    # FTS5 writes rows in the order of their IDs in one segment
    old.sort(key=lambda pair: pair[0])
    postgres = uses_tsvector(connection)
    _changes.run(connection, [_row(*pair, postgres=postgres) for pair in old])
    if new:
        numbers = allot_numbers(connection, DOCUMENT_ID, len(new))
        pairs = zip(numbers, new, strict=True)
        _additions.run(connection, [_row(*pair, postgres=postgres) for pair in pairs])
    if postgres:
        connection.execute(_flush)


def add_prefixes(connection: Connection, limit: int) -> bool:
    """Add the tokens for prefixes to the latest documents without them; False if all have them.

    Documents lack them only after an upgrade. A trigger adds them to what older nodes store.
    """
    last = load_last_allotted(connection, WITHOUT_PREFIXES)
    if not last:
        return False
    if uses_tsvector(connection):
        above = max(last - limit, 0)
        connection.execute(_store_again, {"above": above, "last": last})
        connection.execute(_flush)
    else:
        above = 0
    connection.execute(_record_prefixes, {"above": above, "last": last})
    return True


def remove_document(connection: Connection, kind: str, record: str) -> None:
    """Remove a document from the index, if it is there."""
    connection.execute(
        delete(documents).where(documents.c.kind == kind, documents.c.record == record)
    )


_TOGETHER = 100  # documents of one statement
_NAMES = ("id", "kind", "record", "at", "change", "title", "entities", "text", "tokens")
_additions = BulkStatement(insert(documents), _NAMES, together=_TOGETHER)
_changes = BulkStatement(
    update(documents)
    .where(documents.c.id == bindparam("its_id"))
    .values({name: bindparam(f"to_{name}") for name in _NAMES[1:]}),
    ("its_id", *(f"to_{name}" for name in _NAMES[1:])),
)
_store_again = (
    update(documents)
    .where(documents.c.id > bindparam("above"), documents.c.id <= bindparam("last"))
    .values(tokens=documents.c.tokens)
)
_record_prefixes = (
    update(sequences)
    .where(sequences.c.name == WITHOUT_PREFIXES, sequences.c.value == bindparam("last"))
    .values(value=bindparam("above"))
)
# Of the rows of a batch, each token is added once; searches would read the waiting list to its end.
_flush = select(func.tocsin_flush_documents())
_known = select(documents.c.id, documents.c.record).where(
    documents.c.kind == bindparam("kind"),
    is_in(documents.c.record, "records"),
)


def _load_ids(
    connection: Connection, wanted: Sequence[SearchDocument]
) -> dict[tuple[str, str], int]:
    by_kind = defaultdict(list)
    for document in wanted:
        by_kind[document.kind].append(document.record)
    known: dict[tuple[str, str], int] = {}
    for kind, records in by_kind.items():
        rows = connection.execute(_known, {"kind": kind, "records": records})
        known |= {(kind, record): number for number, record in rows}
    return known


def _row(number: int, tokenized: TokenizedDocument, *, postgres: bool) -> tuple[object, ...]:
    document = tokenized.document
    return (
        number,
        document.kind,
        document.record,
        document.at,
        document.change,
        document.title,
        tokenized.entities,
        document.text[:MAX_TEXT],
        _complete_tsvector(tokenized.tokens, number) if postgres else tokenized.tokens,
    )


def _complete_tsvector(text: str, number: int) -> str:
    """Return a tsvector with the tokens that depend on the document's ID."""
    block = block_token(number >> PREFIX_SPAN, "")
    spans = " ".join(f"'{span_token(shift, number >> shift)}':{_LAST}" for shift in SPANS)
    return f"{text.replace(_PLACE_OF_BLOCK, block)} {spans} '{HAS_PREFIXES}':{_LAST}"


def build_tokens(document: SearchDocument) -> DocumentTokens:
    """Return the tokens by which a document is found."""
    title, text = tokens.fold_text(document.title), tokens.fold_text(document.text[:MAX_TEXT])
    spoken = [*tokens.split_words(title), _BREAK, *tokens.split_words(text)]
    marks = dict.fromkeys([*tokens.entity_tokens(title), *tokens.entity_tokens(text)])
    entities: dict[str, None] = {}
    for field_ in _list_fields(document):
        token, its_marks, its_words = _field_tokens(*field_)
        if token:
            entities.setdefault(token)
            marks.update(its_marks)
            spoken += its_words
    for name, value in (("kind", document.kind), *document.facets.items()):
        if value:
            marks.setdefault(_facet_token(name, value))
    spoken = _bounded(spoken)
    rest = marks.keys() - set(spoken)
    return DocumentTokens(spoken, _within([mark for mark in marks if mark in rest]), list(entities))


def entity_marks(entity: Entity) -> Collection[str]:
    """Return the tokens by which an entity as a whole, or a part of it, is found."""
    value = tokens.fold_text(entity.value).strip()
    return _field_tokens(entity_field(entity.kind), value)[1]


@lru_cache(tokens.REMEMBERED)
def _field_tokens(name: str, value: str) -> tuple[str, dict[str, None], list[str]]:
    """Return a field's value as a token, its marks, and its words after a separator."""
    token = tokens.whole_token(value)
    marks = dict.fromkeys((token, tokens.field_token(name, value), *tokens.part_tokens(value)))
    return token, marks, [_BREAK, *tokens.split_words(value[:_ENTITY_WORDS])]


@lru_cache(tokens.REMEMBERED)
def _facet_token(name: str, value: str) -> str:
    return tokens.field_token(name, tokens.fold_text(value))


def _list_fields(document: SearchDocument) -> Iterable[tuple[str, str]]:
    """Yield the searchable fields of a document with their folded values."""
    for entity in document.entities:
        yield entity_field(entity.kind), tokens.fold_text(entity.value).strip()
    for technique in document.techniques:
        folded = tokens.fold_text(technique).strip()
        yield "technique", folded
        if "." in folded:
            yield "technique", folded.partition(".")[0]
    for identifier in document.identifiers:
        yield "id", tokens.fold_text(identifier).strip()


def _within(found: list[str]) -> list[str]:
    """Return as many of the tokens as fit."""
    if 4 * sum(map(len, found)) + 8 * len(found) <= _ROOM:
        return found
    ends = accumulate(len(token.encode()) + 8 for token in found)
    return [token for token, end in zip(found, ends, strict=True) if end <= _ROOM]


def _bounded(spoken: list[str]) -> list[str]:
    """Return the words that are indexed, each up to its maximum."""
    spoken = _within(spoken[:MAX_WORDS])
    if len(spoken) > MAX_REPEATS:
        seen: dict[str, int] = defaultdict(int)
        for place, word in enumerate(spoken):
            seen[word] += 1
            if seen[word] > MAX_REPEATS:
                spoken[place] = _BREAK
    return spoken


def to_fts5_text(made: DocumentTokens) -> str:
    """Return the tokens as FTS5 splits them, with separators between marks for phrases."""
    marks = (f"{mark} {_BREAK}" if mark.isalnum() else mark for mark in made.marks)
    return " ".join([*made.words, _BREAK, *marks])


def to_tsvector(made: DocumentTokens) -> str:
    """Return the tokens as a PostgreSQL tsvector, without those that depend on the document's ID.

    Words and fields are in it once more for the document's block, which prefixes are searched in.
    """
    places: dict[str, str] = {}
    for place, word in enumerate(made.words, 1):
        places[word] = f"{places[word]},{place}" if word in places else f"{place}"
    places.pop(_BREAK, None)
    pairs = {pair for pair in pairwise(made.words) if _BREAK not in pair}
    with_prefixes = [f"{word}':{at}" for word, at in places.items()]
    others = [pair_token(*pair) for pair in pairs]
    for mark in made.marks:
        if mark[0] == "=" or mark.isalnum():
            with_prefixes.append(f"{mark}':{_LAST}")
        else:
            others.append(mark)
    # Each part is joined at once, which is faster than a text for each token
    return " ".join(
        [
            _quote_all(with_prefixes, "'", ""),
            _quote_all(with_prefixes, f"'{_PLACE_OF_BLOCK}", ""),
            _quote_all(others, "'", f"':{_LAST}"),
        ]
    )


def _quote_all(found: Sequence[str], before: str, after: str) -> str:
    return f"{before}{f'{after} {before}'.join(found)}{after}" if found else ""


def span_token(shift: int, which: int) -> str:
    """Return the token of one block of documents."""
    return f"#{shift}:{which}"


def block_token(block: int, token: str) -> str:
    """Return the token of a word or field in one block of documents.

    PostgreSQL's index reads every match of a prefix, so a prefix is searched in a few blocks first.
    """
    return f"#{block}/{token}"


HAS_PREFIXES = "#prefixes"
"""The token of a document that has the tokens for prefixes."""


def pair_token(first: str, second: str) -> str:
    """Return the token of two consecutive words.

    PostgreSQL's index has no positions: without pairs, it would read each document with both words.
    """
    return f"{first}+{second}"
