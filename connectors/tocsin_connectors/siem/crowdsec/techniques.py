"""Which ATT&CK techniques an alert is about: those that it names, or what its scenario detects.

Most alerts name none, so that the names of scenarios have to do. What these mean is what the hub
labels its scenarios with (https://github.com/crowdsecurity/hub, taxonomy/scenarios.json).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from tocsin_connectors.siem.records import child, text, texts

_TECHNIQUE_LABEL = re.compile(r"attack[.:](T\d{4}(?:\.\d{3})?)", re.IGNORECASE)
_SCENARIO_NAME = re.compile(r"[\w.-]+/[\w.-]+")  # what was decided by hand has a sentence there
_ADDRESS_SCOPES = frozenset({"ip", "range"})


class ScenarioTechnique(NamedTuple):
    """What words in the name of a scenario mean."""

    words: str
    technique: str
    reason: str
    from_afar: bool = False
    """Whether they mean it only where the source of the alert is an address."""

    def fits(self, scenario: str, scope: str) -> bool:
        """Return whether the words are in a name, and the source is of the right scope."""
        words = rf"(?<![a-z])(?:{self.words})(?![a-z])"
        is_right = not self.from_afar or scope.casefold() in _ADDRESS_SCOPES
        return is_right and re.search(words, scenario, re.IGNORECASE) is not None


_EXPLOIT_REASON = "a known hole is tried; not where an account is the source: local (CVE-2021-4034)"
SCENARIO_TECHNIQUES = (
    ScenarioTechnique("bf|bruteforce", "T1110", "passwords are guessed"),
    ScenarioTechnique("dovecot-spam", "T1110", "it counts failed sign-ins, in spite of its name"),
    ScenarioTechnique(
        "user[-_]enum(?:eration)?", "T1589", "it is found out which accounts there are"
    ),
    ScenarioTechnique("scan|prob+ing|crawl", "T1595", "it is found out what there is to attack"),
    ScenarioTechnique(
        "backdoors", "T1595", "backdoors that others left are looked for, and none is made"
    ),
    ScenarioTechnique(
        "sensitive-files|wpconfig", "T1595", "files that should not be readable are asked for"
    ),
    ScenarioTechnique(
        "open-proxy|bad-user-agent", "T1595", "scanners do so, or name themselves so"
    ),
    ScenarioTechnique(r"cve[-_]\d{4}[-_]\d+", "T1190", _EXPLOIT_REASON, from_afar=True),
    ScenarioTechnique(
        "(?:sqli|xss|path-traversal)(?!-prob)", "T1190", "more than the hub's -probing"
    ),
    ScenarioTechnique(
        "vpatch|appsec|modsecurity|naxsi", "T1190", "a web application firewall says so"
    ),
    ScenarioTechnique("webshell", "T1505.003", "a web server runs the commands of others"),
    ScenarioTechnique(
        "impossible-travel", "T1078", "one account is used from places too far apart"
    ),
    ScenarioTechnique("dos|req-limit-exceeded", "T1498", "more is asked for than can be answered"),
)
"""Each line adds its technique. The hub has no scenarios like `http-sqli` or `webshell`: these are
our own reading. It gives spam none."""


def find_techniques(alert: dict[str, Any]) -> Iterator[str]:
    """Yield the techniques that an alert's labels name, else those of its scenario's name."""
    labels = [
        match[1].upper()
        for it in texts(alert, "labels")
        if (match := _TECHNIQUE_LABEL.fullmatch(it))
    ]
    yield from labels or _infer_techniques(alert)


def _infer_techniques(alert: dict[str, Any]) -> Iterator[str]:
    scenario = text(alert, "scenario") or ""
    scope = text(child(alert, "source"), "scope") or ""
    if _SCENARIO_NAME.fullmatch(scenario):
        yield from (it.technique for it in SCENARIO_TECHNIQUES if it.fits(scenario, scope))
