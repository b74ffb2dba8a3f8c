"""A report, as the page of its investigation shows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tocsin.reports import SHOWN, draw_graph, draw_timeline, from_json, number, signed


def build_report_view(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a template needs to show the report of this JSON, with both drawings."""
    report = from_json(document)
    return {
        "report": report,
        "score": number(report.risk_score),
        "share": report.risk_score,
        "signed": signed,
        "timeline": draw_timeline(report.timeline),
        "graph": draw_graph(report),
        "most": SHOWN,
    }
