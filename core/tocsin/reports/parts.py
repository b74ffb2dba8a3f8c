"""Parts of a report, in order, including the explanation of its evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

from tocsin.model import (
    Action,
    EntityAssessment,
    Finding,
    Relation,
    Report,
    Section,
    TimelineEntry,
    name_tactic,
)
from tocsin.reports.blocks import (
    MAX_ROWS,
    build_bullets,
    build_table,
    cite_statements,
    join_words,
    list_values,
    note_omitted,
    split_time,
)
from tocsin.reports.outline import (
    Block,
    Card,
    Facts,
    Items,
    Mark,
    Paragraph,
    Phrase,
    Reference,
    ReportPart,
    Strong,
    TableColumn,
    Values,
    list_citations,
)
from tocsin.reports.text_format import format_number, format_signed, format_time


def build_parts(report: Report, meanings: Mapping[str, str]) -> list[ReportPart]:
    """Return the visible parts of a report, in order.

    `meanings` describes references such as `step:12`, as far as the caller knows them.
    """
    opening = [ReportPart("Summary", (Paragraph(cite_statements(report.summary)),))]
    if report.reply:
        opening.insert(0, ReportPart("Reply", (Paragraph(cite_statements(report.reply)),)))
    shown = [_part(report, section) for section in dict.fromkeys(report.sections)]
    cited = [*opening, *(part for part in shown if part.section is not Section.EVIDENCE)]
    explained = build_evidence(cited, meanings)
    return opening + [explained if each.section is Section.EVIDENCE else each for each in shown]


def describe_verdict(report: Report) -> str:
    """Return the verdict with its confidence: `malicious (high confidence)`."""
    return f"{report.verdict} ({report.confidence} confidence)"


def build_facts(report: Report) -> Facts:
    """Return the facts about a report: query, time range, incidents, techniques, persona."""
    window = f"{format_time(report.window.start)} to {format_time(report.window.end)}"
    rows: list[tuple[str, Phrase]] = [
        ("Query", (report.query,)),
        ("Time range", (window,)),
        ("Incidents examined", (_numbers(report.incidents),)),
        ("ATT&CK tactics", (join_words(map(name_tactic, report.tactics)),)),
        ("ATT&CK techniques", (join_words(report.techniques),)),
        ("Persona", (report.persona.value,)),
    ]
    return Facts(tuple(rows))


def _numbers(incidents: Sequence[int]) -> str:
    return join_words(f"#{number}" for number in incidents)


def _part(report: Report, section: Section) -> ReportPart:
    title, blocks = _PARTS[section]
    return ReportPart(title, blocks(report) or (Paragraph(("None.",)),), section)


def _score(report: Report) -> tuple[Block, ...]:
    columns = (
        TableColumn("Contribution"),
        TableColumn("Points", numeric=True),
        TableColumn("Reason"),
    )
    rows = tuple(
        ((each.name,), (format_signed(each.points),), cite_statements([each.statement]))
        for each in report.contributions[:MAX_ROWS]
    )
    score = format_number(report.risk_score)
    total = f"The score is {score}, the sum of the points, limited to the range 0 to 100."
    parts = build_table("Contributions to the risk score", columns, rows, len(report.contributions))
    return (*parts, Paragraph((total,)))


def _timeline(report: Report) -> tuple[Block, ...]:
    columns = (
        TableColumn("Time", narrow=True),
        TableColumn("Severity", narrow=True),
        TableColumn("Event"),
        TableColumn("Source"),
    )
    rows = tuple(map(_moment, report.timeline[:MAX_ROWS]))
    return build_table("Incidents, alerts and events", columns, rows, len(report.timeline))


def _moment(moment: TimelineEntry) -> tuple[Phrase, ...]:
    severity: Phrase = (Mark(moment.severity),) if moment.severity else ()
    what = cite_statements([moment.statement])
    return (format_time(moment.at),), severity, what, (moment.source,)


def _findings(report: Report) -> tuple[Block, ...]:
    return note_omitted(tuple(map(_finding, report.findings[:MAX_ROWS])), len(report.findings))


def _finding(finding: Finding) -> Card:
    items = Items(tuple(cite_statements([each]) for each in finding.statements))
    rows: list[tuple[str, Phrase]] = [
        ("Severity", (Mark(finding.severity),)),
        ("Rule", (finding.kind,)),
    ]
    if finding.incidents:
        rows.append(("Incidents", (_numbers(finding.incidents),)))
    if finding.techniques:
        rows.append(("ATT&CK techniques", (join_words(finding.techniques),)))
    if finding.entities:
        rows.append(("Entities", list_values(finding.entities)))
    return Card(finding.id, finding.title, (items, Facts(tuple(rows))))


def _entities(report: Report) -> tuple[Block, ...]:
    columns = (
        TableColumn("Entity"),
        TableColumn("Kind", narrow=True),
        TableColumn("Assessment"),
        TableColumn("Distance", numeric=True),
        TableColumn("Incidents", numeric=True),
        TableColumn("First seen", narrow=True),
        TableColumn("Last seen", narrow=True),
        TableColumn("Details"),
    )
    rows = tuple(map(_entity, report.entities[:MAX_ROWS]))
    met = build_table("Examined entities", columns, rows, len(report.entities))
    return met + _relations(report.relations)


def _entity(each: EntityAssessment) -> tuple[Phrase, ...]:
    return (
        (Values((each.entity.value,)),),
        (each.entity.kind.value,),
        _assessment(each),
        (str(each.depth),),
        (f"{each.incident_count:,}",),
        split_time(each.first_seen),
        split_time(each.last_seen),
        cite_statements(each.statements),
    )


def _assessment(each: EntityAssessment) -> Phrase:
    traits = {"internal": each.internal, "well known": each.well_known}
    named = ", ".join(word for word, applies in traits.items() if applies)
    return (Mark(each.disposition), f"({named})") if named else (Mark(each.disposition),)


def _relations(relations: Sequence[Relation]) -> tuple[Block, ...]:
    columns = (
        TableColumn("From"),
        TableColumn("Relation", narrow=True),
        TableColumn("To"),
        TableColumn("Time", narrow=True),
    )
    rows = tuple(
        (
            (Values((each.source.value,)),),
            (each.type.value,),
            (Values((each.target.value,)),),
            split_time(each.at),
        )
        for each in relations[:MAX_ROWS]
    )
    return build_table("Relations", columns, rows, len(relations))


def _gaps(report: Report) -> tuple[Block, ...]:
    return build_bullets([cite_statements([gap]) for gap in report.gaps])


def _actions(report: Report) -> tuple[Block, ...]:
    return build_bullets([_action(action) for action in report.actions])


def _action(action: Action) -> Phrase:
    urgent: Phrase = (Mark("Urgent"),) if action.urgent else ()
    return (*urgent, Strong(action.text), *cite_statements([action.reason]))


def build_evidence(cited: Iterable[ReportPart], meanings: Mapping[str, str]) -> ReportPart:
    """Return the part that explains the references cited in others, in order of citation."""
    places: dict[str, dict[str, None]] = {}
    for part in cited:
        for reference, place in list_citations(part):
            places.setdefault(reference, {})[place] = None
    columns = (
        TableColumn("Reference", narrow=True),
        TableColumn("Description"),
        TableColumn("Cited in"),
    )
    rows = tuple(
        (
            (Reference(reference),),
            (_describe_reference(reference, meanings),),
            (join_words(places[reference]),),
        )
        for reference in list(places)[:MAX_ROWS]
    )
    blocks = build_table("References", columns, rows, len(places))
    return ReportPart("Evidence", blocks or (Paragraph(("None.",)),), Section.EVIDENCE)


def _describe_reference(reference: str, meanings: Mapping[str, str]) -> str:
    if reference in meanings:
        return meanings[reference]
    kind, _, name = reference.partition(":")
    match kind:
        case "step":
            return f"Step {name} of this session's ledger"
        case "incident":
            return f"Incident {name}, as stored in Tocsin"
    return reference


_PARTS: Mapping[Section, tuple[str, Callable[[Report], tuple[Block, ...]]]] = MappingProxyType(
    {
        Section.SCORE: ("Risk score", _score),
        Section.TIMELINE: ("Timeline", _timeline),
        Section.FINDINGS: ("Findings", _findings),
        Section.ENTITIES: ("Entities", _entities),
        Section.GAPS: ("Gaps", _gaps),
        Section.ACTIONS: ("Recommended actions", _actions),
        Section.EVIDENCE: ("Evidence", lambda _: ()),
    }
)
