"""Sample reports."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from tocsin.model import (
    Action,
    Confidence,
    Contribution,
    Disposition,
    Entity,
    EntityAssessment,
    EntityKind,
    Finding,
    Persona,
    Relation,
    RelationType,
    Report,
    Section,
    Severity,
    Statement,
    TimelineEntry,
    Verdict,
    Window,
)
from tocsin.reports.text_format import clean_line

BEGIN = datetime(2026, 11, 21, 5, 33, 1, 123_000, tzinfo=UTC)
ATTACKER = Entity(EntityKind.IP, "203.0.113.9")
SERVER = Entity(EntityKind.HOST, "web-1.corp.example")
USER = Entity(EntityKind.USER, "deploy")
INTERNAL = Entity(EntityKind.IP, "10.20.0.14")
PAYLOAD = Entity(EntityKind.URL, "http://cdn.evil.example/x.sh")
DOMAIN = Entity(EntityKind.DOMAIN, "cdn.evil.example")
FILE = Entity(
    EntityKind.FILE_HASH, "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
)

# Text that means something to whoever reads Markdown, HTML, templates or addresses
HOSTILE = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "</title></style></svg><!-- --> ]]> <![CDATA[",
    "'\" onmouseover=x",
    "&lt;b&gt; &amp; &#60; &nbsp",
    "**bold** _slanted_ ~~gone~~ `code` $x$ ==y== H~2~O :smile:",
    "[a](http://evil.example) ![b](//evil.example/i.png) [c][d] [^1]",
    "[x]: http://evil.example",
    "<http://evil.example> <a@evil.example>",
    "https://evil.example/?q=1 www.evil.example www.1 a@evil.example evil.example",
    "ftp://h //localhost /x//y.com",
    "mailto:a@evil.example javascript:alert(1) HTTP://EVIL.EXAMPLE xn--p1ai.xn--p1ai пример.рф",
    "| a | b |\n| --- | --- |",
    "# one\n## two\n\n- three\n  1. four",
    "```\ncode\n```",
    "    indented",
    "> quoted",
    "one\n---\ntwo\n===",
    "---",
    "- - -",
    "1. one",
    "1234567890) one",
    "+ one",
    "[ ] to do",
    ": meaning",
    "/close",
    "{{ 7*7 }} {% for x in y %} {# no #} ${x} #{x} <%= x %>",
    "@channel #12 !34",
    "ends with \\",
    "\\| `|` ``",
    "`",
    "\u202egnp.exe \u2067",
    "\x00\x1b[31m\x85\x9f\ud800\ufffe",
    "one\u2028# two\x0b\x0c\r\nthree",
)

texts = st.one_of(
    st.text(min_size=1, max_size=60),
    st.sampled_from(HOSTILE),
    st.lists(st.one_of(st.sampled_from(HOSTILE), st.text(max_size=5)), max_size=4).map("".join),
    st.text(alphabet="\\`*_{}[]<>()#+-.!|&~$^=:/@wh \n1a", min_size=1, max_size=30),
).filter(lambda text: clean_line(text) != "")


def said(text: str, *evidence: str) -> Statement:
    return Statement(text, evidence or ("step:1",))


def brute_force() -> Report:
    """A brute force that CrowdSec detected, and the sign-in that followed."""
    return Report(
        title="SSH brute force from 203.0.113.9 on web-1, followed by a sign-in",
        query="What is incident 7 about, and did they get in?",
        persona=Persona.ANALYST,
        window=Window(BEGIN - timedelta(days=1), BEGIN + timedelta(hours=1)),
        verdict=Verdict.MALICIOUS,
        confidence=Confidence.HIGH,
        risk_score=82.5,
        summary=(
            said(
                "203.0.113.9 tried 48 passwords on web-1.corp.example within three minutes.",
                "incident:7",
                "step:4",
            ),
            said("17 minutes later the user deploy signed in from the same address.", "step:6"),
            said("The session fetched a script from cdn.evil.example.", "step:9"),
        ),
        contributions=(
            Contribution(
                name="severity",
                points=25,
                statement=said("The worst incident is High.", "incident:7"),
            ),
            Contribution(
                name="sequence",
                points=35,
                statement=said("A sign-in followed failed sign-ins.", "step:13"),
            ),
            Contribution(
                name="reputation",
                points=30,
                statement=said("A watch list names 203.0.113.9.", "step:3"),
            ),
            Contribution(
                name="known-scanner",
                points=-7.5,
                statement=said("The address was seen here before without harm.", "step:5"),
            ),
        ),
        timeline=_timeline(),
        findings=_findings(),
        entities=_entities(),
        relations=_relations(),
        incidents=(7, 9),
        techniques=("T1110.001", "T1078", "T1105"),
        gaps=(
            said(
                "The provider wazuh could not be queried: it did not respond within 120 s.",
                "step:7",
            ),
            said("VirusTotal was not asked: the incident is marked TLP:AMBER.", "step:10"),
        ),
        actions=(
            Action(
                text="Lock the account deploy and end its sessions.",
                reason=said("It was used from 203.0.113.9.", "step:6"),
                urgent=True,
            ),
            Action(
                text="Isolate web-1.corp.example and keep its memory.",
                reason=said("A script was fetched there.", "step:9"),
                urgent=True,
            ),
            Action(
                text="Allow SSH with keys only.",
                reason=said("Passwords are accepted from the Internet.", "incident:7"),
            ),
        ),
    )


def executive() -> Report:
    """The same, as it is told to who decides."""
    shown = (Section.SCORE, Section.FINDINGS, Section.ACTIONS, Section.GAPS)
    return replace(brute_force(), persona=Persona.EXECUTIVE, sections=shown)


def empty() -> Report:
    """Nothing was found, and hardly anything asked."""
    return Report(
        title="Nothing is known of 192.0.2.1",
        query="192.0.2.1",
        persona=Persona.ANALYST,
        window=Window(BEGIN - timedelta(days=1), BEGIN),
        verdict=Verdict.INCONCLUSIVE,
        confidence=Confidence.LOW,
        risk_score=0,
        summary=(said("No incident involves 192.0.2.1."),),
    )


def huge(size: int = 5_000) -> Report:
    """As much of everything as an investigation could bring, and more."""
    entities = [Entity(EntityKind.HOST, f"host-{n}.corp.example") for n in range(size)]
    one = said("It was met.", "step:2")
    return replace(
        brute_force(),
        timeline=tuple(
            TimelineEntry(
                at=BEGIN + timedelta(seconds=n * n % 86_400),
                statement=said(f"Sign-in number {n}.", f"step:{n}"),
                severity=list(Severity)[n % 5],
                source=f"provider:siem-{n % 9}",
            )
            for n in range(size)
        ),
        findings=tuple(
            Finding(
                id=f"F{n}",
                kind="shared-entity",
                title=f"Finding number {n}",
                severity=Severity.LOW,
                statements=(one,),
                entities=tuple(entities[:size]) if n == 1 else tuple(entities[n : n + 2]),
                incidents=tuple(range(size)) if n == 1 else (n,),
            )
            for n in range(1, size + 1)
        ),
        entities=tuple(
            EntityAssessment(
                entity=entity,
                disposition=list(Disposition)[n % 4],
                depth=n % 4,
                incident_count=n,
                first_seen=BEGIN,
                statements=(one,),
            )
            for n, entity in enumerate(entities)
        ),
        relations=tuple(
            Relation(
                source=entities[n], type=RelationType.CONNECTED_TO, target=entities[n * 7 % size]
            )
            for n in range(size)
        ),
        gaps=(one,) * size,
        incidents=tuple(range(size)),
    )


def hostile(text: str) -> Report:
    """A report with `text` wherever text can stand."""
    entity = Entity(EntityKind.FILE, text)
    statement = Statement(text, (text, "step:1"))
    return Report(
        title=text,
        query=text,
        persona=Persona.ANALYST,
        window=Window(BEGIN, BEGIN + timedelta(hours=1)),
        verdict=Verdict.SUSPICIOUS,
        confidence=Confidence.MEDIUM,
        risk_score=50,
        summary=(statement, statement),
        reply=(statement,),
        contributions=(Contribution(name=text, points=1, statement=statement),),
        timeline=(
            TimelineEntry(at=BEGIN, statement=statement, severity=Severity.HIGH, source=text),
            TimelineEntry(at=BEGIN + timedelta(minutes=1), statement=statement, source="graph"),
        ),
        findings=(
            Finding(
                id=text,
                kind=text,
                title=text,
                severity=Severity.HIGH,
                statements=(statement,),
                entities=(entity,),
                incidents=(1,),
                techniques=(text,),
            ),
        ),
        entities=(
            EntityAssessment(
                entity=entity, disposition=Disposition.MALICIOUS, statements=(statement,)
            ),
            EntityAssessment(entity=SERVER, disposition=Disposition.UNKNOWN, depth=1),
        ),
        relations=(Relation(source=entity, type=RelationType.SENT_TO, target=SERVER),),
        incidents=(1,),
        techniques=(text,),
        gaps=(statement,),
        actions=(Action(text=text, reason=statement, urgent=True),),
    )


def _timeline() -> tuple[TimelineEntry, ...]:
    failures = tuple(
        TimelineEntry(
            at=BEGIN + timedelta(seconds=19 * n),
            statement=said(f"Password {4 * n + 1} to {4 * n + 4} failed for root.", "step:4"),
            source="provider:edge",
        )
        for n in range(10)
    )
    return (
        TimelineEntry(
            at=BEGIN - timedelta(hours=19),
            statement=said("203.0.113.9 looked for open ports.", "incident:3"),
            severity=Severity.LOW,
            source="incidents",
        ),
        *failures,
        TimelineEntry(
            at=BEGIN + timedelta(minutes=3, seconds=4),
            statement=said("CrowdSec detected crowdsecurity/ssh-bf.", "incident:7"),
            severity=Severity.HIGH,
            source="incidents",
        ),
        TimelineEntry(
            at=BEGIN + timedelta(minutes=20, seconds=11),
            statement=said("deploy signed in from 203.0.113.9.", "step:6"),
            severity=Severity.CRITICAL,
            source="provider:edge",
        ),
        TimelineEntry(
            at=BEGIN + timedelta(minutes=21),
            statement=said("curl fetched http://cdn.evil.example/x.sh.", "step:9"),
            severity=Severity.HIGH,
            source="provider:falcon",
        ),
        TimelineEntry(
            at=BEGIN + timedelta(minutes=24),
            statement=said("web-1 connected to 10.20.0.14, port 5432.", "step:9"),
            source="provider:falcon",
        ),
    )


def _findings() -> tuple[Finding, ...]:
    return (
        Finding(
            id="F1",
            kind="sequence",
            title="A sign-in followed many failed ones from the same address",
            severity=Severity.CRITICAL,
            statements=(
                said("48 sign-ins from 203.0.113.9 failed between 05:33 and 05:36.", "step:4"),
                said("deploy signed in from 203.0.113.9 at 05:53.", "step:6"),
            ),
            entities=(ATTACKER, SERVER, USER),
            incidents=(7,),
            techniques=("T1110.001", "T1078"),
        ),
        Finding(
            id="F2",
            kind="reputation",
            title="203.0.113.9 stands on a watch list",
            severity=Severity.HIGH,
            statements=(said("The list abuse-feed names it since 2026-10-02.", "step:3"),),
            entities=(ATTACKER,),
            incidents=(3, 7),
        ),
        Finding(
            id="F3",
            kind="first-seen",
            title="cdn.evil.example was never seen here before",
            severity=Severity.MEDIUM,
            statements=(said("No incident of the last 90 days involves it.", "step:5"),),
            entities=(DOMAIN, PAYLOAD, FILE),
            incidents=(9,),
            techniques=("T1105",),
        ),
    )


def _entities() -> tuple[EntityAssessment, ...]:
    end = BEGIN + timedelta(minutes=24)
    return (
        EntityAssessment(
            entity=ATTACKER,
            disposition=Disposition.MALICIOUS,
            incident_count=2,
            first_seen=BEGIN - timedelta(hours=19),
            last_seen=end,
            statements=(said("A watch list names it.", "step:3"),),
        ),
        EntityAssessment(
            entity=SERVER,
            disposition=Disposition.SUSPICIOUS,
            internal=True,
            depth=1,
            incident_count=4,
            first_seen=BEGIN - timedelta(days=60),
            last_seen=end,
            statements=(said("A script was fetched there.", "step:9"),),
        ),
        EntityAssessment(
            entity=USER,
            disposition=Disposition.SUSPICIOUS,
            internal=True,
            depth=1,
            incident_count=1,
            first_seen=BEGIN,
            last_seen=end,
        ),
        EntityAssessment(
            entity=PAYLOAD,
            disposition=Disposition.MALICIOUS,
            depth=2,
            incident_count=1,
            first_seen=BEGIN,
            statements=(said("The domain is nine days old.", "step:11"),),
        ),
        EntityAssessment(entity=INTERNAL, disposition=Disposition.UNKNOWN, internal=True, depth=2),
        EntityAssessment(entity=DOMAIN, disposition=Disposition.SUSPICIOUS, depth=3),
        EntityAssessment(
            entity=FILE,
            disposition=Disposition.BENIGN,
            well_known=True,
            depth=3,
            statements=(said("It is the hash of a test file.", "step:12"),),
        ),
    )


def _relations() -> tuple[Relation, ...]:
    at = BEGIN + timedelta(minutes=20, seconds=11)
    return (
        Relation(source=ATTACKER, type=RelationType.CONNECTED_TO, target=SERVER, at=BEGIN),
        Relation(source=USER, type=RelationType.LOGGED_ON_TO, target=SERVER, at=at),
        Relation(source=SERVER, type=RelationType.DOWNLOADED_FROM, target=PAYLOAD, at=at),
        Relation(source=SERVER, type=RelationType.CONNECTED_TO, target=INTERNAL),
        Relation(source=PAYLOAD, type=RelationType.PART_OF, target=DOMAIN),
        Relation(source=FILE, type=RelationType.DOWNLOADED_FROM, target=PAYLOAD),
    )
