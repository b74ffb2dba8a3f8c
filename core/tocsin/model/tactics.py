"""ATT&CK tactics: their IDs and names.

https://attack.mitre.org/tactics/enterprise/, /mobile/ and /ics/
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

TACTICS: Mapping[str, str] = MappingProxyType(
    {
        "TA0043": "Reconnaissance",
        "TA0042": "Resource Development",
        "TA0001": "Initial Access",
        "TA0002": "Execution",
        "TA0003": "Persistence",
        "TA0004": "Privilege Escalation",
        "TA0005": "Defense Evasion",
        "TA0006": "Credential Access",
        "TA0007": "Discovery",
        "TA0008": "Lateral Movement",
        "TA0009": "Collection",
        "TA0011": "Command and Control",
        "TA0010": "Exfiltration",
        "TA0040": "Impact",
        "TA0107": "Inhibit Response Function",  # ICS alone, like the next
        "TA0106": "Impair Process Control",
    }
)
"""Names of tactics by ID, in the order of an attack. Tactics of ICS and mobile devices with the
name of an enterprise tactic count as that one."""
_TACTIC_ID = re.compile(r"TA\d{4}", re.IGNORECASE)
_NO_LETTER = re.compile(r"[^a-z]")
_ID_BY_NAME = {_NO_LETTER.sub("", name.lower()): tactic for tactic, name in TACTICS.items()} | {
    "defenceevasion": "TA0005",
    "commandcontrol": "TA0011",
    "candc": "TA0011",
    "c2": "TA0011",
}
_ORDER = {tactic: position for position, tactic in enumerate(TACTICS)}


def parse_tactics(values: Iterable[str]) -> Iterator[str]:
    """Yield the IDs of the tactics in `values`, which are IDs or names, such as `InitialAccess`.

    Names can have any letter case and any separators, and can start with `attack.`, as in Sigma
    rules. Unknown values are skipped.
    """
    for value in values:
        word = value.strip().lower().removeprefix("attack.")
        if _TACTIC_ID.fullmatch(word):
            yield word.upper()
        elif found := _ID_BY_NAME.get(word if word == "c2" else _NO_LETTER.sub("", word)):
            yield found


def sort_tactics(tactics: Iterable[str]) -> list[str]:
    """Return each tactic once, in the order of an attack; unknown IDs come last."""
    return sorted(set(tactics), key=lambda tactic: (_ORDER.get(tactic, len(_ORDER)), tactic))


def name_tactic(tactic: str) -> str:
    """Return the name of a tactic, or its ID if the name is unknown."""
    return TACTICS.get(tactic, tactic)
