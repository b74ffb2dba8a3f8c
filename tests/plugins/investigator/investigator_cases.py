"""Cases with a known verdict and the range of their score."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta

from investigator_world import World, ago, domain, event, host, incident, ip, user

from tocsin import (
    Disposition,
    Enrichment,
    Entity,
    EntityKind,
    Relation,
    RelationType,
    Severity,
    Verdict,
)

ATTACKER = ip("203.0.113.5")
ROOT = user("root")
SERVER = host("web-1")


def opinion(entity: Entity, disposition: Disposition, **given) -> Enrichment:
    return Enrichment(
        entity=entity, summary=f"listed as {disposition}", disposition=disposition, **given
    )


def attempts(count: int, words: str = "Failed password for root", minutes: float = 60):
    return [
        event(words, ago(minutes=minutes) + timedelta(seconds=number), ATTACKER, ROOT, SERVER)
        for number in range(count)
    ]


def relation(source: Entity, type_: RelationType, target: Entity) -> Relation:
    return Relation(source=source, type=type_, target=target)


@dataclass(frozen=True)
class Truth:
    """A case: what there is, what is asked, and what must come out."""

    name: str
    world: World
    query: str
    least: float
    most: float
    verdict: Verdict
    finding: str | None = None


_BRUTE_FORCE = incident(
    1,
    "crowdsecurity/ssh-bf",
    occurred_at=ago(minutes=61),
    techniques=("T1110",),
    entities=(ATTACKER, ROOT, SERVER),
)
_C2 = domain("update.evil.example")
_HASH = Entity(EntityKind.FILE_HASH, "a" * 64)
_PC = host("pc-7")
_SCANNER = ip("198.51.100.9")
_BAD = {
    "lists": [opinion(ATTACKER, Disposition.MALICIOUS)],
    "online-reputation": [opinion(ATTACKER, Disposition.MALICIOUS, score=100)],
}
_ADMIN = ip("192.0.2.40")
_OFFICE = ip("10.1.2.3")
_CVE = Entity(EntityKind.CVE, "CVE-2021-44228")
_SPREADING = [
    event(
        f"logon to server-{number}",
        ago(minutes=30 - number),
        user("svc-backup"),
        host(f"server-{number}"),
        relations=(
            relation(user("svc-backup"), RelationType.LOGGED_ON_TO, host(f"server-{number}")),
        ),
    )
    for number in range(6)
]
_VENDOR = ip("198.51.100.200")
_INTRUSION = [
    incident(
        number,
        title,
        severity=Severity.CRITICAL,
        occurred_at=ago(hours=4 - number),
        techniques=(technique,),
        entities=(ATTACKER, SERVER),
    )
    for number, title, technique in (
        (1, "Exploit of a public server", "T1190"),
        (2, "A shell was started", "T1059"),
        (3, "Traffic to a controlling server", "T1071.001"),
    )
]
_RESOLVER = ip("10.1.0.53")
_RANDOM = [
    incident(
        number,
        f"alert {number}",
        severity=list(Severity)[number % 4],
        occurred_at=ago(hours=9 * number),
        techniques=(("T1595", "T1078", "T1053", "T1003", "T1021", "T1486")[-number % 6],),
        entities=(_RESOLVER, host(f"pc-{number % 11}"), user(f"user-{number % 13}")),
    )
    for number in range(1, 71)
]

CASES = [
    Truth(
        "a scan by our own vendor of a host that is under attack",
        World(
            incidents=[
                *_INTRUSION,
                incident(
                    238,
                    "port scan",
                    severity=Severity.HIGH,
                    occurred_at=ago(hours=5),
                    techniques=("T1595",),
                    entities=(_VENDOR, SERVER),
                ),
            ],
            events={"edge": attempts(12) + attempts(1, "Accepted password for root", 50)},
            opinions={**_BAD, "allow": [opinion(_VENDOR, Disposition.BENIGN)]},
        ),
        "incident 238",
        0,
        19,
        Verdict.BENIGN,
        "benign-explanation",
    ),
    Truth(
        "a scan of a host that somebody else took",
        World(
            incidents=[
                *_INTRUSION,
                incident(
                    7,
                    "port scan",
                    severity=Severity.LOW,
                    occurred_at=ago(hours=5),
                    entities=(_SCANNER, SERVER),
                ),
            ],
            events={"edge": attempts(12) + attempts(1, "Accepted password for root", 50)},
            opinions=_BAD,
        ),
        "incident 7",
        20,
        45,
        Verdict.SUSPICIOUS,
        "shared-entity",
    ),
    Truth(
        "a resolver of ours in many incidents that have nothing to do with one another",
        World(incidents=_RANDOM),
        "hunt 10.1.0.53 last 30 days",
        20,
        39,
        Verdict.SUSPICIOUS,
    ),
    Truth(
        "an incident of which nothing is known, not even how severe it is",
        World(incidents=[incident(1, "", severity_assumed=True)]),
        "incident 1",
        0,
        19,
        Verdict.INCONCLUSIVE,
    ),
    Truth(
        "a brute force that its SIEM does not say the severity of",
        World(incidents=[replace(_BRUTE_FORCE, severity_assumed=True)]),
        "incident 1",
        20,
        39,
        Verdict.SUSPICIOUS,
    ),
    Truth(
        "benign scanner noise",
        World(
            incidents=[
                incident(1, "port scan", severity=Severity.LOW, entities=(_SCANNER,)),
            ],
            opinions={
                "online-noise": [opinion(_SCANNER, Disposition.BENIGN, tags=("scanner",))],
            },
        ),
        "incident 1",
        0,
        19,
        Verdict.BENIGN,
        "background-noise",
    ),
    Truth(
        "an informational incident that nothing is known of",
        World(incidents=[incident(1, severity=Severity.INFORMATIONAL, entities=(_SCANNER,))]),
        "incident 1",
        0,
        19,
        Verdict.INCONCLUSIVE,
    ),
    Truth(
        "a single brute force",
        World(incidents=[_BRUTE_FORCE], events={"edge": attempts(12)}),
        "incident 1",
        20,
        39,
        Verdict.SUSPICIOUS,
        "burst",
    ),
    Truth(
        "a brute force of an address with a bad name",
        World(incidents=[_BRUTE_FORCE], events={"edge": attempts(12)}, opinions=_BAD),
        "incident 1",
        40,
        69,
        Verdict.SUSPICIOUS,
        "agreement",
    ),
    Truth(
        "a brute force that succeeded",
        World(
            incidents=[_BRUTE_FORCE],
            events={"edge": attempts(12) + attempts(1, "Accepted password for root", 50)},
        ),
        "incident 1",
        70,
        89,
        Verdict.MALICIOUS,
        "success-after-failures",
    ),
    Truth(
        "malware that calls back",
        World(
            incidents=[
                incident(
                    1,
                    "Suspicious PowerShell",
                    severity=Severity.HIGH,
                    occurred_at=ago(minutes=90),
                    techniques=("T1059.001",),
                    entities=(_PC, _HASH),
                ),
                incident(
                    2,
                    "Traffic to a controlling server",
                    severity=Severity.HIGH,
                    occurred_at=ago(minutes=60),
                    techniques=("T1071.001",),
                    entities=(_PC, _C2),
                ),
            ],
            events={
                "edge": [
                    event(
                        "dns lookup",
                        ago(minutes=61),
                        _PC,
                        _C2,
                        relations=(relation(_PC, RelationType.CONNECTED_TO, _C2),),
                    )
                ]
            },
            opinions={"lists": [opinion(_C2, Disposition.MALICIOUS)]},
        ),
        "what happened in incidents 1 and 2?",
        70,
        100,
        Verdict.MALICIOUS,
        "callback",
    ),
    Truth(
        "an intrusion that spreads",
        World(
            incidents=[
                incident(
                    1,
                    "Exploit of a public server",
                    severity=Severity.CRITICAL,
                    occurred_at=ago(hours=3),
                    techniques=("T1190",),
                    entities=(ATTACKER, user("svc-backup")),
                ),
                incident(
                    2,
                    "Credentials dumped",
                    severity=Severity.HIGH,
                    occurred_at=ago(hours=2),
                    techniques=("T1003",),
                    entities=(user("svc-backup"), host("server-0")),
                ),
                incident(
                    3,
                    "Files encrypted",
                    severity=Severity.CRITICAL,
                    occurred_at=ago(hours=1),
                    techniques=("T1486",),
                    entities=(user("svc-backup"), host("server-5")),
                ),
            ],
            events={"edge": _SPREADING},
            opinions=_BAD,
        ),
        "incidents 1, 2 and 3",
        90,
        100,
        Verdict.MALICIOUS,
        "lateral-movement",
    ),
    Truth(
        "a known-good administrator",
        World(
            incidents=[incident(1, "Many failed logons", entities=(_ADMIN, user("alice")))],
            opinions={"lists": [opinion(_ADMIN, Disposition.BENIGN)]},
        ),
        "is incident 1 malicious?",
        0,
        19,
        Verdict.BENIGN,
        "benign-explanation",
    ),
    Truth(
        "an internal misconfiguration",
        World(
            incidents=[incident(1, "Many failed logons", entities=(_OFFICE, user("svc-scan")))],
            events={
                "edge": [
                    event("logon failed", ago(days=1) + timedelta(seconds=number), _OFFICE)
                    for number in range(40)
                ]
            },
        ),
        "incident 1",
        0,
        19,
        Verdict.BENIGN,
        "internal-only",
    ),
    Truth(
        "an attempt to exploit what is exploited elsewhere",
        World(
            incidents=[
                incident(1, "Log4j exploit", severity=Severity.HIGH, entities=(ATTACKER, _CVE))
            ],
            opinions={
                "cve": [opinion(_CVE, Disposition.UNKNOWN, tags=("known-exploited",))],
            },
        ),
        "incident 1",
        40,
        69,
        Verdict.SUSPICIOUS,
        "exploited-cve",
    ),
    Truth(
        "a bad address that nobody met",
        World(opinions=_BAD),
        "is 203.0.113.5 malicious?",
        20,
        39,
        Verdict.SUSPICIOUS,
        "reputation",
    ),
    Truth(
        "an address of which nobody knows anything",
        World(),
        "who is 203.0.113.77?",
        0,
        19,
        Verdict.INCONCLUSIVE,
    ),
]
