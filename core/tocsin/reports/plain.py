"""Complete reports as plain text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from textwrap import wrap
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
    Strong,
    Table,
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


def to_plain_text(
    report: Report, meanings: Mapping[str, str] = MappingProxyType({}), *, width: int = 80
) -> str:
    """Return the complete report as lines of at most `width` characters where words allow it.

    Links are defanged. `meanings` describes references such as `step:12`, as far as they are known.
    """
    title = _clean(report.title)
    lines = [*wrap(title, width), "=" * min(len(title), width), ""]
    lines += [f"Verdict: {describe_verdict(report)}"]
    lines += [f"Risk score: {format_number(report.risk_score)} of 100", ""]
    lines += _lay_out(build_facts(report), width)
    for part in build_parts(report, meanings):
        lines += ["", part.title, "-" * len(part.title)]
        for block in part.blocks:
            lines += _lay_out(block, width)
    return "\n".join(lines) + "\n"


def _lay_out(block: Block, width: int) -> Iterator[str]:
    match block:
        case Paragraph(phrase):
            yield from wrap(_phrase(phrase), width)
        case Items(phrases):
            for phrase in phrases:
                yield from _item(_phrase(phrase), width)
        case Facts(rows):
            for name, phrase in rows:
                yield from _item(f"{name}: {_phrase(phrase)}", width)
        case Table(caption, columns, rows):
            titles = ", ".join(column.title.lower() for column in columns)
            yield from wrap(f"{caption} ({titles}):", width)
            for row in rows:
                yield from _item("; ".join(filter(None, map(_phrase, row))), width)
        case Card(name, title, blocks):
            yield from ("", *wrap(_clean(f"{name}: {title}"), width))
            for each in blocks:
                yield from _lay_out(each, width)


def _item(text: str, width: int) -> list[str]:
    return wrap(
        text,
        width,
        initial_indent="- ",
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _phrase(phrase: Phrase) -> str:
    return " ".join(filter(None, map(_inline, phrase)))


def _inline(inline: Inline) -> str:
    match inline:
        case Values(texts):
            return ", ".join(map(clean_value, texts))
        case Strong(text) | Mark(text):
            return _clean(text)
        case Cited(references):
            return f"[{', '.join(_clean(format_reference(each)) for each in references)}]"
        case Reference(name):
            return _clean(format_reference(name))
    return _clean(inline)


def _clean(text: str) -> str:
    return defang_links(clean_line(text))
