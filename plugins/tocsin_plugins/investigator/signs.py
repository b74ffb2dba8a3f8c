"""Signs of attack in the words and fields of events and incidents."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum

from tocsin import IncidentRecord, SiemEvent
from tocsin_plugins.attack import find_tactics

_LONGEST = 2_000
_MOST_FIELDS = 60


class AttackSign(StrEnum):
    """A sign of attack in a record."""

    FAILED_LOGON = "a failed logon"
    BRUTE_FORCE = "a brute-force attack"
    LOGON = "a successful logon"
    SCAN = "a scan"
    EXPLOIT = "an exploit attempt"
    MALWARE = "malware"
    CALLBACK = "a connection to a command-and-control server"


_LOGON = re.compile(
    r"\b(?:log(?:ged)?[ _-]?(?:in|on)s?|sign(?:ed)?[ _-]?(?:in|on)s?|auth\w*|passwords?"
    r"|credentials?|sshd?|rdp|session opened|kerberos|brute[ _-]?force)\b|-bf\b"
)
_FAILURE = re.compile(
    r"\b(?:fail(?:ed|ures?|s)?|denied|invalid|rejected|incorrect|unsuccessful|wrong|refused|bad"
    r"|brute[ _-]?force|unauthorized|not allowed)\b|-bf\b"
)
_SUCCESS = re.compile(
    r"\b(?:success(?:ful(?:ly)?)?|succeeded|accepted|session opened|logged (?:in|on))\b"
)
_OTHERS = {
    AttackSign.BRUTE_FORCE: re.compile(
        r"\bbrute[ _-]?forc\w+\b|-bf\b|\bpassword (?:spray|guess)\w*|\bcredential stuffing\b"
    ),
    AttackSign.MALWARE: re.compile(
        r"\b(?:malware|trojan|ransomware|backdoor|botnet|rootkit|infostealer|cryptominer)\b"
    ),
    AttackSign.SCAN: re.compile(
        r"\b(?:port ?scan\w*|scan(?:s|ned|ning|ner)?|prob(?:e[ds]?|ing)|nmap|masscan)\b"
    ),
    AttackSign.EXPLOIT: re.compile(
        r"\b(?:exploit\w*|injection|remote code|rce|overflow|(?:path|directory) traversal"
        r"|webshell)\b"
    ),
    AttackSign.CALLBACK: re.compile(
        r"\b(?:beacon\w*|callback|c2|c&c|command[ -]and[ -]control|reverse shell|cnc)\b"
    ),
}
# The event ids of Windows' security log, and the words of ECS and OCSF
_OUTCOME_FIELDS = frozenset(
    {"outcome", "status", "result", "event.outcome", "status_detail", "auth_status", "log_type"}
)
_EVENT_IDS = frozenset({"event_id", "eventid", "event_code", "event.code", "winlog.event_id"})
_WINDOWS = {"4624": AttackSign.LOGON, "4625": AttackSign.FAILED_LOGON}
_TACTICS = {
    AttackSign.SCAN: "reconnaissance",
    AttackSign.EXPLOIT: "initial-access",
    AttackSign.FAILED_LOGON: "credential-access",
    AttackSign.BRUTE_FORCE: "credential-access",
    AttackSign.CALLBACK: "command-and-control",
}
_TECHNIQUES = {  # with their sub-techniques
    "T1110": AttackSign.BRUTE_FORCE,
    "T1190": AttackSign.EXPLOIT,
    "T1203": AttackSign.EXPLOIT,
    "T1210": AttackSign.EXPLOIT,
    "T1486": AttackSign.MALWARE,
    "T1595": AttackSign.SCAN,
    "T1046": AttackSign.SCAN,
}
_ALSO_LEGITIMATE = frozenset({"T1105", "T1219"})
"""Techniques of command and control that are as common without an attack: downloads of tools, and
remote administration. They suggest no callback.
"""
_STOPPED = re.compile(
    r"\b(?:decided: \w+|ban(?:ned)?|blocked|dropped|quarantined|isolated|contained|prevented)\b",
    re.IGNORECASE,
)
_LET_PASS = re.compile(r"(?<!not )\ballowed\b", re.IGNORECASE)
_CLAUSES = re.compile(r"[;\n]|(?<=\w)\.\s")
_ACTIONS = ("action", "disposition")


def find_event_signs(event: SiemEvent) -> frozenset[AttackSign]:
    """Return the signs in an event."""
    fields = dict(_plain_fields(event.fields))
    for name in _EVENT_IDS & fields.keys():
        if sign := _WINDOWS.get(fields[name]):
            return frozenset({sign})
    outcome = " ".join(fields[name] for name in sorted(_OUTCOME_FIELDS & fields.keys()))
    return _signs_in(f"{event.summary[:_LONGEST]} {outcome}".lower().replace("_", " "))


def find_incident_signs(record: IncidentRecord) -> frozenset[AttackSign]:
    """Return the signs in the title of an incident."""
    return _signs_in(record.title[:_LONGEST].lower().replace("_", " "))


def find_attacks(record: IncidentRecord) -> frozenset[AttackSign]:
    """Return the signs in an incident's title, alerts and techniques."""
    titles = " ; ".join([record.title, *(alert.title for alert in record.alerts)])
    found = set(_signs_in(titles[:_LONGEST].lower().replace("_", " ")))
    tactics = {
        tactic
        for technique in record.techniques
        if technique.upper().partition(".")[0] not in _ALSO_LEGITIMATE
        for tactic in find_tactics(technique)
    }
    if "credential-access" in tactics:
        found.add(AttackSign.FAILED_LOGON)
    if "command-and-control" in tactics:
        found.add(AttackSign.CALLBACK)
    named = (technique.upper().partition(".")[0] for technique in record.techniques)
    return frozenset(found | {_TECHNIQUES[name] for name in named if name in _TECHNIQUES})


def find_block_clause(text: str) -> str | None:
    """Return the clause of a text that reports a response, such as `decided: ban`."""
    return _clause(text, _STOPPED)


def find_pass_clause(text: str) -> str | None:
    """Return the clause of a text that reports that the activity was allowed."""
    return _clause(text, _LET_PASS)


def describe_event(event: SiemEvent) -> str:
    """Return the summary of an event with its action fields."""
    fields = _plain_fields(event.fields)
    done = (f"{name}: {value}" for name, value in fields if name.endswith(_ACTIONS))
    return "; ".join([event.summary[:_LONGEST], *done])


def _clause(text: str, pattern: re.Pattern[str]) -> str | None:
    clauses = _CLAUSES.split(text[:_LONGEST])
    return next((clause.strip(" .") for clause in clauses if pattern.search(clause)), None)


def find_shown_tactics(
    signs: frozenset[AttackSign], techniques: tuple[str, ...] = ()
) -> frozenset[str]:
    """Return the tactics of techniques; without any, those that the signs suggest.

    A technique with several tactics counts for the first one only.
    """
    named = {tactic for technique in techniques for tactic in find_tactics(technique)[:1]}
    return frozenset(named or {_TACTICS[sign] for sign in signs if sign in _TACTICS})


def _signs_in(text: str) -> frozenset[AttackSign]:
    found = {sign for sign, pattern in _OTHERS.items() if pattern.search(text)}
    if _LOGON.search(text):
        if _FAILURE.search(text):
            found.add(AttackSign.FAILED_LOGON)
        elif _SUCCESS.search(text):
            found.add(AttackSign.LOGON)
    return frozenset(found)


def _plain_fields(fields: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    for name, value in list(fields.items())[:_MOST_FIELDS]:
        if isinstance(value, str | int):
            yield str(name).lower(), str(value)[:200]
