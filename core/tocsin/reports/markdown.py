"""Reports as Markdown: CommonMark with the tables of GitHub Flavored Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from tocsin.model import Report
from tocsin.reports.outline import (
    Block,
    Card,
    Cited,
    Facts,
    Inline,
    Items,
    Mark,
    Paragraph,
    Phrase,
    Reference,
    ReportPart,
    Strong,
    Table,
    TableColumn,
    Values,
)
from tocsin.reports.parts import build_facts, build_parts, describe_verdict
from tocsin.reports.text_format import (
    clean_line,
    clean_value,
    defang_links,
    format_number,
    format_reference,
)

_SPECIAL = re.compile(r"[\\`*_{}\[\]<>&#~$^=]|:(?=[a-z+-][\w+-]*:)")  # the last begins an emoji
_FIRST = re.compile(r"(?=[/:])|(?=[-+](?:[-+ ]|$))|\d+(?=[.)](?: |$))")  # what begins a block
_SPAN = re.compile(r"[^`|]+")  # what can stand in a code span, also in a table


def to_markdown(report: Report, meanings: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return the report as Markdown.

    `meanings` describes references such as `step:12`, as far as they are known.
    """
    verdict = f"**Verdict:** {escape_markdown(describe_verdict(report))}"
    score = f"**Risk score:** {format_number(report.risk_score)} of 100"
    head = [
        f"# {escape_markdown(report.title)}".rstrip(),
        f"{verdict}\\\n{score}",
        _block(build_facts(report)),
    ]
    return "\n\n".join([*head, *map(_part, build_parts(report, meanings))]) + "\n"


def escape_markdown(text: str) -> str:
    """Return `text` escaped for Markdown, also at the start of a line."""
    line = _SPECIAL.sub(r"\\\g<0>", defang_links(clean_line(text))).replace("|", "&#124;")
    return _FIRST.sub(r"\g<0>\\", line, count=1) if _FIRST.match(line) else line


def _part(part: ReportPart) -> str:
    return "\n\n".join([f"## {part.title}", *map(_block, part.blocks)])


def _block(block: Block) -> str:
    match block:
        case Paragraph(phrase):
            return _phrase(phrase)
        case Items(phrases):
            return "\n".join(f"* {_phrase(phrase)}" for phrase in phrases)
        case Facts(rows):
            return "\n".join(
                f"- **{escape_markdown(name)}:** {_phrase(phrase)}" for name, phrase in rows
            )
        case Table(caption, columns, rows):
            return f"{caption}:\n\n{_table(columns, rows)}"
        case Card(name, title, blocks):
            return "\n\n".join([f"### {escape_markdown(f'{name}: {title}')}", *map(_block, blocks)])


def _table(columns: Sequence[TableColumn], rows: Iterable[tuple[Phrase, ...]]) -> str:
    titles = _row(column.title for column in columns)
    rule = _row("--:" if column.numeric else "---" for column in columns)
    return "\n".join([titles, rule, *(_row(map(_phrase, row)) for row in rows)])


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _phrase(phrase: Phrase) -> str:
    return " ".join(filter(None, map(_inline, phrase)))


def _inline(inline: Inline) -> str:
    match inline:
        case Values(texts):
            return ", ".join(map(_span, texts))
        case Strong(text):
            return f"**{escaped}**" if (escaped := escape_markdown(text)) else ""
        case Mark(word):
            return escape_markdown(word)
        case Cited(references):
            return f"[{', '.join(escape_markdown(format_reference(each)) for each in references)}]"
        case Reference(name):
            return escape_markdown(format_reference(name))
    return escape_markdown(inline)


def _span(text: str) -> str:
    value = clean_value(text)
    return f"`{value}`" if _SPAN.fullmatch(value) else escape_markdown(value)
