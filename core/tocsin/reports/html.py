"""Reports as a self-contained HTML page."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from tocsin.model import Report
from tocsin.reports.graph import draw_graph
from tocsin.reports.outline import (
    Card,
    Cited,
    Facts,
    Items,
    Mark,
    Paragraph,
    Reference,
    ReportPart,
    Strong,
    Table,
    Values,
)
from tocsin.reports.parts import build_facts, build_parts, describe_verdict
from tocsin.reports.text_format import clean_line, clean_value, format_number, format_reference
from tocsin.reports.timeline import draw_timeline

_STYLE = (files(__package__) / "templates" / "page.css").read_text(encoding="utf-8")
_DIGEST = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()

CONTENT_SECURITY_POLICY = (
    f"default-src 'none'; style-src 'sha256-{_DIGEST}'; base-uri 'none'; form-action 'none'"
)
"""Content security policy of the page, which the HTTP response also sends as a header."""


def to_html(report: Report, meanings: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return the report as an HTML page.

    `meanings` describes references such as `step:12`, as far as they are known.
    """
    every = build_parts(report, meanings)
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            report=report,
            policy=CONTENT_SECURITY_POLICY,
            style=Markup(_STYLE),  # noqa: S704 - a file of ours
            standing=describe_verdict(report),
            score=format_number(report.risk_score),
            share=min(max(report.risk_score, 0), 100),
            facts=build_facts(report),
            parts=every,
            anchors=_anchors(every),
            timeline=draw_timeline(report.timeline),
            graph=draw_graph(report),
        )
    )


def _anchors(every: Sequence[ReportPart]) -> dict[str, str]:
    """Return the anchor of each reference that the page explains."""
    tables = [block for part in every for block in part.blocks if isinstance(block, Table)]
    cells = [phrase for table in tables for row in table.rows for phrase in row]
    names = [each.name for phrase in cells for each in phrase if isinstance(each, Reference)]
    return {name: f"evidence-{position}" for position, name in enumerate(names, 1)}


@lru_cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader(__package__),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"plain": clean_line, "exact": clean_value, "label": format_reference}
    kinds = (Paragraph, Items, Facts, Table, Card, Values, Mark, Strong, Cited, Reference)
    tests: dict[str, Any] = {kind.__name__.lower(): partial(_is, kind) for kind in kinds}
    environment.tests |= tests
    return environment


def _is(kind: type, value: object) -> bool:
    return isinstance(value, kind)
