"""Runs of an investigator against a scripted query client."""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, datetime

from tocsin.hookspecs import Investigator
from tocsin.investigations import collect_citable, collect_citations
from tocsin.model import Inquiry, Persona, Report
from tocsin.testing.query_client import ScriptedQueryClient

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
"""The default time of a run."""


async def investigate(
    investigator: Investigator,
    client: ScriptedQueryClient,
    *messages: str,
    persona: Persona = Persona.ANALYST,
    provider: str | None = None,
    asked_at: datetime = NOON,
    previous: Report | None = None,
) -> Report:
    """Run an investigator twice and return its report; the second run replays the first.

    Raises AssertionError if the second run asks different questions or returns a different report,
    if the report cites unknown references, or if its findings are not numbered in order. The
    investigator's exceptions propagate.
    """
    inquiry = Inquiry(
        session_id="ses_test",
        messages=messages,
        persona=persona,
        provider=provider,
        asked_at=asked_at,
        previous=previous,
    )
    report = await _run(investigator, inquiry, client)
    again = await _run(investigator, inquiry, client.replay())
    if again != report:
        differing = (field.name for field in fields(Report) if _differs(field.name, report, again))
        raise AssertionError(f"the second run returns a different {', '.join(differing)}")
    _check(report, client, previous)
    return report


async def _run(investigator: Investigator, inquiry: Inquiry, client: ScriptedQueryClient) -> Report:
    try:
        return await investigator.investigate(inquiry, client)
    finally:
        client.check()


def _differs(name: str, one: Report, other: Report) -> bool:
    return bool(getattr(one, name) != getattr(other, name))


def _check(report: Report, client: ScriptedQueryClient, previous: Report | None) -> None:
    concluded = {reference for step in client.steps for reference in step.evidence}
    citable = client.references | (collect_citable(previous) if previous else set())
    if unknown := sorted((collect_citations(report) | concluded) - citable):
        raise AssertionError(f"unknown references in the report: {', '.join(unknown)}")
    names = [finding.id for finding in report.findings]
    if names != [f"F{number}" for number in range(1, len(names) + 1)]:
        raise AssertionError(f"findings are named {', '.join(names)}, expected F1, F2, ...")
