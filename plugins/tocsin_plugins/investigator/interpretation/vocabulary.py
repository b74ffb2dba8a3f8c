"""Vocabulary of queries: intents, follow-ups, severities, incident numbers and stop words."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from tocsin import Severity


class QueryIntent(StrEnum):
    """A question that a query asks."""

    WHAT_HAPPENED = "what happened"
    IS_MALICIOUS = "whether it is malicious"
    WHO_ELSE = "who else is affected"
    FIRST_SEEN = "when it was first seen"
    HUNT = "whether there are related incidents"
    WHO_IS = "who it is"
    WHAT_TO_DO = "what to do"


class FollowUp(StrEnum):
    """An action that a follow-up message requests."""

    DEEPER = "go deeper"
    ONLY = "keep to"
    IGNORE = "leave out"
    EXPLAIN_SCORE = "explain the score"
    SHOW_TIMELINE = "show the timeline"
    START_OVER = "start over"
    LOOK_AGAIN = "look again"


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE)


_INTENTS = {
    QueryIntent.WHAT_HAPPENED: _pattern(
        r"\bwhat (?:has )?happened\b|\bwhat is going on\b|\bexplain\b"
    ),
    QueryIntent.IS_MALICIOUS: _pattern(
        r"\bmalicious\b|\bbenign\b|\bfalse positives?\b|\b(?:dangerous|harmful|legit(?:imate)?)\b"
    ),
    QueryIntent.WHO_ELSE: _pattern(
        r"\b(?:who|what|which|where) else\b"
        r"|\b(?:other|more|which) (?:users?|hosts?|machines?|victims?)\b"
        r"|\balso (?:seen|hit|affected)\b|\baffected\b"
    ),
    QueryIntent.FIRST_SEEN: _pattern(
        r"\bfirst (?:seen|time|appear\w*)\b|\bwhen did\b|\bsince when\b"
    ),
    QueryIntent.HUNT: _pattern(
        r"\bhunt(?:ing)?\b|\blook for\b|\bsearch for\b|\bany(?:thing)? similar\b"
    ),
    QueryIntent.WHO_IS: _pattern(r"\b(?:who|what) (?:is|was|are)\b|\btell me (?:more )?about\b"),
    QueryIntent.WHAT_TO_DO: _pattern(
        r"\bwhat (?:should|can|must|do|shall|could) (?:i|we)\b|\bwhat to do\b|\bnext steps?\b"
        r"|\brecommend\w*\b|\bhow (?:do|should|can) (?:i|we) respond\b"
    ),
}
_WISHES = {
    FollowUp.DEEPER: _pattern(
        r"\b(?:go|dig|look) (?:\w+ )?deeper\b|\bdig in\b|\bpivot (?:on|more)\b"
    ),
    FollowUp.ONLY: _pattern(r"\b(?:only|just|focus on|restrict(?:ed)? to|limit(?:ed)? to)\b"),
    FollowUp.IGNORE: _pattern(
        r"\b(?:ignore|exclude|without|except|leave out|skip|disregard|drop|not about)\b"
    ),
    FollowUp.EXPLAIN_SCORE: _pattern(
        r"\bwhy\b.*\b(?:score|risk|verdict|rated)\b|\bexplain\b.*\b(?:score|risk|verdict)\b"
        r"|\bhow\b.*\bscore\b|^\W*(?:but )?why\W*$"
    ),
    FollowUp.SHOW_TIMELINE: _pattern(r"\btime ?line\b|\bchronolog\w+\b|\bin what order\b"),
    FollowUp.START_OVER: _pattern(
        r"\b(?:start|begin)(?:ing)? (?:over|again|afresh)\b|\bfrom scratch\b"
        r"|^\W*(?:please )?reset\W*$|\breset (?:everything|all|the (?:session|scope|search))\b"
        r"|\bforget (?:about )?(?:everything|all|the rest)\b"
    ),
    FollowUp.LOOK_AGAIN: _pattern(
        r"\b(?:now|again|once more|new|news|changed?|different|updates?|refresh|re-?run)\b"
    ),
}
_SEVERITY = "|".join(severity.value for severity in Severity)
_SEVERITIES = (
    _pattern(rf"\bseverity\s*(?:[:=]|>=|is|of|at least)?\s*(?P<word>{_SEVERITY})\b"),
    _pattern(
        rf"\b(?P<word>{_SEVERITY})[- ](?:severity|incidents?|alerts?|cases?|or (?:above|higher))\b"
    ),
    _pattern(rf"\b(?:at least|above) (?P<word>{_SEVERITY})\b"),
)
_SCORE = _pattern(r"\b(?:score|risk)\D{0,20}?(?P<number>[0-9]{1,3}(?:\.[0-9])?)\b")
_WHO_IS = _pattern(r"\bwho (?:is|was) [\"'“]?(?P<value>[\w][\w.@$\\-]{1,253})[\"'”]?\s*[?.!]*\s*$")
_BROWSING = _pattern(r"\b(?:incidents|alerts|detections|cases|offenses|everything)\b")
_NUMBER = r"#?[0-9]{1,18}"
_SOME = rf"{_NUMBER}(?:\s*(?:-|\u2013|to|through|until)\s*{_NUMBER})?"
_AND = r"\s*(?:,\s*and|,|and|&|or)\s*"
_NUMBERS = (
    _pattern(
        r"\b(?:incidents?|cases?)(?:\s+(?:numbers?|nos?\.?))?[\s:]+"
        rf"(?P<numbers>{_SOME}(?:{_AND}{_SOME})*)(?![\w:/-]|\.[0-9])"
    ),
    _pattern(
        rf"^\W*(?:(?:only|just|and|also|ignore|without)\s+)?"
        rf"(?P<numbers>{_SOME}(?:{_AND}{_SOME})+|{_NUMBER}\s*(?:-|\u2013|to)\s*{_NUMBER})"
        r"\s*[.?!]*\s*$"
    ),
    _pattern(r"(?<![\w/#&.=-])#(?P<numbers>[0-9]{1,18})(?![\w-])"),
    _pattern(r"\bINC-?(?P<numbers>[0-9]{1,18})(?![\w-])"),
)
_RANGE = re.compile(rf"({_NUMBER})\s*(?:-|\u2013|to|through|until)\s*({_NUMBER})", re.IGNORECASE)
MAX_RANGE = 1_000
"""Maximum number of incidents read from a range."""
_NAMED = _pattern(
    r"\b(?P<kind>user(?:name)?|account|host(?:name)?|machine|server|workstation)\s+"
    r"(?:named\s+|called\s+)?[\"'“]?(?P<value>[\w][\w.@$\\-]{1,253})"
)
_WORD = re.compile(r"[^\W_](?:[\w-]{0,62}[^\W_])?")
_STOPWORDS = frozenset(
    re.findall(
        r"\w+",
        """
        a about above account affected after again alert alerts all also am an and any anything are
        as ask at be because been before being below benign between both but by can case cases
        check come could d day days deeper did dig different do does doing done down during each
        else ever every everything exclude explain find first for found from further get give go
        going got had happened happening has have hello help her here hey hi high him his history
        host hosts hour hours how hunt i if ignore in incident incidents into investigate is it its
        just last leave let like ll look looking low machine make malicious many may me medium
        minute minutes month months more most much my new no not now of off ok on once only or
        other our out over own past pivot please previous re recent report same score search see
        seen server severity she should show similar since skip so some such t tell than thank
        thanks that the their them then there these they thing things this those through time
        timeline to today too under until up us user users ve very was watch we week weeks were
        what when where whether which while who whole why will with without would yes yesterday
        you your

        brief environment evening list morning network news night overview situation status
        summarise summarize summary weekend
        """,
    )
)
_COMMON = _STOPWORDS | frozenset(
    re.findall(
        r"\w+",
        """
        accounts across action actions activities activity actor actors add additionally address
        addresses affect affects afresh analyse analysis analyze another answer anyone anything
        appear appeared appears asap asked associated attack attacked attacker attackers attacks
        attempt attempts aware away back bad based become begin beginning behavior behaviour
        believe better box brief briefly bring care carefully cause caused certain chronological
        chronologically chronology clear close closely closer compromise compromised computer
        computers concern concerned concerning confidence confirm connected connection connections
        contact contacted contacts correlate correlated curious current currently danger dangerous
        data deep describe detail detailed details detect detected detection detections determine
        device devices disregard does domain domains drop earlier early either email emails
        endpoint endpoints ensure entities entity especially etc evaluate even event events
        evidence examine examined except exclude excluding exist explanation extra fact far file
        files final finally find finding findings fine follow followed following forget fresh full
        fully further gap gaps gather general given gives going good guess guys hack hacked hacker
        happen happens harmful hash hashes having hello history hit hits hostname hostnames hosts
        hunting idea identify immediately important indicate indicator indicators indication
        info inform information innocent inspect instead intelligence interested interesting
        investigated investigating investigation investigations involve involved involvement
        involving ioc iocs ip ips ipv4 ipv6 issue issues item items keep kind kindly know known
        laptop later learn leave left legit legitimate level limit limited list listed listing
        lists ll logs machines made mailbox mailboxes main make makes malware matter maybe mean
        means met might mind minimum moment must myself name named names nature necessary need
        needed needs network networks never news next nobody none normal note nothing notice
        number numbers object observable observables observed obviously occur occurred odd offense
        offenses ok okay one ones open opinion order original origin overall owner pc people
        perhaps person pivot place point possible possibly potential potentially present
        previously prior probably problem process processes pull question questions quick quickly
        range ranges rate rated rather reach reached read real really reason reasons recently
        recommend recommendation recommendations recommended refresh regarding relate related
        relates relation relations relationship rerun reputation reset resource resources respond
        respect response responsible rest restart restrict restricted result results review
        reviewed risk risks run running sample saw say says scope second seeing seem seems seen
        sees seriously session sessions seriousness shortly shows sign signs similar single
        situation skip somebody someone something soon sorry sort source sources specific
        specifically start started starting state step steps still story strange subnet subnets
        subject sum summarize sure suspect suspected suspicion suspicious system systems take
        taken talk talked talking talks target targeted targets technique techniques telling
        term terms things think third though thought thoroughly threat threats timeline together
        top topic touched touches trace traces track traffic trigger triggered triggers true try
        trying type understand unknown unusual update updates url urls use used uses using usual
        verdict verify versus vet via victim victims view visit visited visits vs vulnerability
        vulnerabilities want wanted wants way ways weird wish within wonder wondering word work
        workstation workstations worried worry worse worst would wrong
        """,
    )
)
"""Words that change nothing about what is investigated."""
_GENERAL = frozenset({"attacker", "attackers", "behind", "concerned", "responsible", "source"})
MAX_WORDS = 8
"""Maximum number of words that are searched for."""


def find_intents(text: str) -> tuple[QueryIntent, ...]:
    """Return the questions in a text, in a fixed order."""
    return tuple(intent for intent, pattern in _INTENTS.items() if pattern.search(text))


def find_wishes(text: str) -> frozenset[FollowUp]:
    """Return the follow-up actions in a text."""
    return frozenset(wish for wish, pattern in _WISHES.items() if pattern.search(text))


def find_severity(text: str) -> Severity | None:
    """Return the minimum severity in a text, None if there is none."""
    for pattern in _SEVERITIES:
        if match := pattern.search(text):
            return Severity.parse(match["word"])
    return None


def is_common(word: str) -> bool:
    """Return whether a word, in lower case, changes nothing about what is investigated."""
    return (len(word) == 1 and word.isalpha()) or word in _COMMON


def strip_severity_and_score(text: str) -> str:
    """Return a text without the severity and the score that it mentions."""
    for pattern in _SEVERITIES:
        text = pattern.sub(" ", text)
    return _SCORE.sub(lambda match: match[0].replace(match["number"], " "), text)


def browses(text: str) -> bool:
    """Return whether a text asks for incidents in general."""
    return _BROWSING.search(text) is not None


@dataclass(frozen=True, slots=True)
class IncidentNumbers:
    """The incident numbers in a text."""

    named: tuple[int, ...]
    """All numbers in order, including those in ranges."""
    within: frozenset[int]
    """Those that only a range names."""
    cut: str | None
    """A range that is too long to be read in full; None if there is none."""
    rest: str
    """The text without them."""


def find_numbers(text: str) -> IncidentNumbers:
    """Return the incident numbers in a text, and the first ones of a long range."""
    single: set[int] = set()
    within: set[int] = set()
    cut = None
    for pattern in _NUMBERS:
        for match in pattern.finditer(text):
            listed = match["numbers"]
            for span in _RANGE.finditer(listed):
                first, last = sorted(int(end.lstrip("#")) for end in span.groups())
                cut = span[0] if last - first >= MAX_RANGE else cut
                within |= set(range(first, min(last + 1, first + MAX_RANGE)))
            single |= {int(number) for number in re.findall("[0-9]+", _RANGE.sub(" ", listed))}
        text = pattern.sub(" ", text)
    return IncidentNumbers(tuple(sorted(single | within)), frozenset(within - single), cut, text)


def find_score(text: str) -> float | None:
    """Return the score that a text mentions, None if there is none."""
    match = _SCORE.search(text)
    return float(match["number"]) if match else None


def find_asked_name(text: str) -> str | None:
    """Return the name in a "who is" question; None if there is none."""
    match = _WHO_IS.search(text)
    value = match["value"].rstrip(".-") if match else ""
    return value if value and not set(find_words(value)) <= _GENERAL else None


def find_named_values(text: str) -> tuple[tuple[str, str], ...]:
    """Return the users and hosts that a text names as such: (`user`, `alice`)."""
    return tuple(
        ("user" if match["kind"].lower().startswith(("user", "acc")) else "host", value)
        for match in _NAMED.finditer(text)
        if (value := match["value"].rstrip(".-")).lower() not in _STOPWORDS
    )


def find_words(text: str) -> tuple[str, ...]:
    """Return the search words in a text, each once, in order."""
    found = dict.fromkeys(
        word.lower() for word in _WORD.findall(text) if not word.isdecimal() and len(word) > 1
    )
    return tuple(word for word in found if word not in _STOPWORDS)
