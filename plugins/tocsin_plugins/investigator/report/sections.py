"""Sections of a report for each persona, in order."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tocsin import Persona, Section

SECTIONS: Mapping[Persona, tuple[Section, ...]] = MappingProxyType(
    {
        Persona.ANALYST: (
            Section.SCORE,
            Section.FINDINGS,
            Section.TIMELINE,
            Section.ENTITIES,
            Section.ACTIONS,
            Section.GAPS,
            Section.EVIDENCE,
        ),
        Persona.THREAT_HUNTER: (
            Section.FINDINGS,
            Section.ENTITIES,
            Section.TIMELINE,
            Section.GAPS,
            Section.SCORE,
            Section.ACTIONS,
            Section.EVIDENCE,
        ),
        Persona.INCIDENT_RESPONDER: (
            Section.ACTIONS,
            Section.TIMELINE,
            Section.FINDINGS,
            Section.ENTITIES,
            Section.SCORE,
            Section.GAPS,
            Section.EVIDENCE,
        ),
        Persona.EXECUTIVE: (Section.SCORE, Section.FINDINGS, Section.ACTIONS, Section.GAPS),
    }
)
