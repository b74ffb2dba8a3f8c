"""What the words and fields of events and incidents tell: failures, successes, scans, exploits."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum

from tocsin import IncidentRecord, SiemEvent
from tocsin_plugins.attack import tactics_of

_LONGEST = 2_000
_MOST_FIELDS = 60


class Sign(StrEnum):
    """What a record shows."""

    FAILED_LOGON = "a failed logon"
    BRUTE_FORCE = "a brute force"
    LOGON = "a successful logon"
    SCAN = "a scan"
    EXPLOIT = "an attempt to exploit"
    MALWARE = "malware"
    CALLBACK = "a connection to a controlling server"


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
    Sign.BRUTE_FORCE: re.compile(
        r"\bbrute[ _-]?forc\w+\b|-bf\b|\bpassword (?:spray|guess)\w*|\bcredential stuffing\b"
    ),
    Sign.MALWARE: re.compile(
        r"\b(?:malware|trojan|ransomware|backdoor|botnet|rootkit|infostealer|cryptominer)\b"
    ),
    Sign.SCAN: re.compile(
        r"\b(?:port ?scan\w*|scan(?:s|ned|ning|ner)?|prob(?:e[ds]?|ing)|nmap|masscan)\b"
    ),
    Sign.EXPLOIT: re.compile(
        r"\b(?:exploit\w*|injection|remote code|rce|overflow|(?:path|directory) traversal"
        r"|webshell)\b"
    ),
    Sign.CALLBACK: re.compile(
        r"\b(?:beacon\w*|callback|c2|c&c|command[ -]and[ -]control|reverse shell|cnc)\b"
    ),
}
# The event ids of Windows' security log, and the words of ECS and OCSF
_OUTCOME_FIELDS = frozenset(
    {"outcome", "status", "result", "event.outcome", "status_detail", "auth_status", "log_type"}
)
_EVENT_IDS = frozenset({"event_id", "eventid", "event_code", "event.code", "winlog.event_id"})
_WINDOWS = {"4624": Sign.LOGON, "4625": Sign.FAILED_LOGON}
_TACTICS = {
    Sign.SCAN: "reconnaissance",
    Sign.EXPLOIT: "initial-access",
    Sign.FAILED_LOGON: "credential-access",
    Sign.BRUTE_FORCE: "credential-access",
    Sign.CALLBACK: "command-and-control",
}
_TECHNIQUES = {  # with their sub-techniques
    "T1110": Sign.BRUTE_FORCE,
    "T1190": Sign.EXPLOIT,
    "T1203": Sign.EXPLOIT,
    "T1210": Sign.EXPLOIT,
    "T1486": Sign.MALWARE,
    "T1595": Sign.SCAN,
    "T1046": Sign.SCAN,
}
_STOPPED = re.compile(
    r"\b(?:decided: \w+|ban(?:ned)?|blocked|dropped|quarantined|isolated|contained|prevented)\b",
    re.IGNORECASE,
)
_LET_PASS = re.compile(r"(?<!not )\ballowed\b", re.IGNORECASE)
_CLAUSES = re.compile(r"[;\n]|(?<=\w)\.\s")
_ACTIONS = ("action", "disposition")


def signs_of_event(event: SiemEvent) -> frozenset[Sign]:
    """Return what an event shows."""
    fields = dict(_plain_fields(event.fields))
    for name in _EVENT_IDS & fields.keys():
        if sign := _WINDOWS.get(fields[name]):
            return frozenset({sign})
    outcome = " ".join(fields[name] for name in sorted(_OUTCOME_FIELDS & fields.keys()))
    return _signs_in(f"{event.summary[:_LONGEST]} {outcome}".lower().replace("_", " "))


def signs_of_incident(record: IncidentRecord) -> frozenset[Sign]:
    """Return what the title of an incident shows."""
    return _signs_in(record.title[:_LONGEST].lower().replace("_", " "))


def attacks_in(record: IncidentRecord) -> frozenset[Sign]:
    """Return what kinds of attack an incident tells of: its title, its alerts, its techniques."""
    titles = " ; ".join([record.title, *(alert.title for alert in record.alerts)])
    found = set(_signs_in(titles[:_LONGEST].lower().replace("_", " ")))
    tactics = {tactic for technique in record.techniques for tactic in tactics_of(technique)}
    if "credential-access" in tactics:
        found.add(Sign.FAILED_LOGON)
    if "command-and-control" in tactics:
        found.add(Sign.CALLBACK)
    named = (technique.upper().partition(".")[0] for technique in record.techniques)
    return frozenset(found | {_TECHNIQUES[name] for name in named if name in _TECHNIQUES})


def stopped_in(text: str) -> str | None:
    """Return the clause of a text that says what was done against it, such as `decided: ban`."""
    return _clause(text, _STOPPED)


def let_pass_in(text: str) -> str | None:
    """Return the clause of a text that says that it was let pass."""
    return _clause(text, _LET_PASS)


def words_of(event: SiemEvent) -> str:
    """Return what an event says in words, and what a field says was done."""
    fields = _plain_fields(event.fields)
    done = (f"{name}: {value}" for name, value in fields if name.endswith(_ACTIONS))
    return "; ".join([event.summary[:_LONGEST], *done])


def _clause(text: str, pattern: re.Pattern[str]) -> str | None:
    clauses = _CLAUSES.split(text[:_LONGEST])
    return next((it.strip(" .") for it in clauses if pattern.search(it)), None)


def tactics_shown(signs: frozenset[Sign], techniques: tuple[str, ...] = ()) -> frozenset[str]:
    """Return the tactics that techniques serve; where they serve none, those that signs show.

    A technique that serves several counts for the first of them alone.
    """
    named = {tactic for technique in techniques for tactic in tactics_of(technique)[:1]}
    return frozenset(named or {_TACTICS[sign] for sign in signs if sign in _TACTICS})


def _signs_in(text: str) -> frozenset[Sign]:
    found = {sign for sign, pattern in _OTHERS.items() if pattern.search(text)}
    if _LOGON.search(text):
        if _FAILURE.search(text):
            found.add(Sign.FAILED_LOGON)
        elif _SUCCESS.search(text):
            found.add(Sign.LOGON)
    return frozenset(found)


def _plain_fields(fields: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    for name, value in list(fields.items())[:_MOST_FIELDS]:
        if isinstance(value, str | int):
            yield str(name).lower(), str(value)[:200]
