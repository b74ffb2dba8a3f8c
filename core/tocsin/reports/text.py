"""Reports as plain text: short texts for comments, and every sentence for the search index."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tocsin.model import Action, Finding, Report, Statement, name_tactic
from tocsin.reports.parts import describe_verdict
from tocsin.reports.text_format import clean_line, defang_links, format_number, truncate

MAX_LENGTH = 2_000  # characters in total, which fit in a comment or message everywhere
_SUMMARY = 700
_LINE = 100
_LINES = 5


def to_text(report: Report) -> str:
    """Return a few lines without any markup, of 2,000 characters at most.

    The lines contain the title, verdict, risk score, summary, worst findings and first actions.
    Links are defanged. Evidence is omitted, because readers outside Tocsin cannot look it up.
    """
    lines = [
        _line(report.title, 2 * _LINE),
        _verdict(report),
        _line(" ".join(statement.text for statement in report.summary), _SUMMARY),
        *_list("Findings", [f"{each.severity}: {each.title}" for each in _worst(report.findings)]),
        *_list("Recommended actions", [_action(action) for action in report.actions]),
    ]
    return truncate("\n".join(filter(None, lines)), MAX_LENGTH)


def to_short_text(report: Report, url: str) -> str:
    """Return only the verdict and the risk score, with a link to the report.

    The text contains none of the examined data, not even the title.
    """
    return f"Investigated by Tocsin.\n{_verdict(report)}\nReport: {url}"


def _verdict(report: Report) -> str:
    score = format_number(report.risk_score)
    return f"Verdict: {describe_verdict(report)}. Risk score: {score} of 100."


def session_document_text(report: Report) -> str:
    """Return the text of a report for the search index, one item per line."""
    return "\n".join(filter(None, _said(report)))


def _said(report: Report) -> Iterator[str]:
    yield from (report.title, report.query)
    yield from _texts(report.reply + report.summary)
    for finding in report.findings:
        yield finding.title
        yield from _texts(finding.statements)
    yield from _texts([moment.statement for moment in report.timeline])
    for each in report.entities:
        yield each.entity.value
        yield from _texts(each.statements)
    yield from map(name_tactic, report.tactics)
    yield from report.techniques
    yield from _texts(report.gaps)
    for action in report.actions:
        yield from (action.text, action.reason.text)


def _texts(statements: Sequence[Statement]) -> Iterator[str]:
    yield from (statement.text for statement in statements)


def _worst(findings: Sequence[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda finding: -finding.severity.rank)


def _action(action: Action) -> str:
    return f"Urgent: {action.text}" if action.urgent else action.text


def _list(title: str, lines: Sequence[str]) -> Iterator[str]:
    if not lines:
        return
    yield f"{title}:"
    yield from (f"- {_line(line, _LINE)}" for line in lines[:_LINES])
    if len(lines) > _LINES:
        yield f"- and {len(lines) - _LINES:,} more"


def _line(text: str, most: int) -> str:
    return truncate(defang_links(clean_line(text)), most)
