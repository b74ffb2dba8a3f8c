"""Known notice types, with their severity, the role of their `src` and the content of their `sub`.

https://docs.zeek.org/en/current/zeek-noticeindex.html, and BZAR of MITRE
(https://github.com/mitre-attack/bzar). Zeek has no severities, because each site has to decide what
is bad.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import TypeVar

from tocsin import Severity
from tocsin_connectors.siem.entity_fields import FieldContent

T = TypeVar("T")

OPERATIONAL_NOTICES = (
    *("CaptureLoss::*", "PacketFilter::*", "Conn::Content_Gap", "Notice::Tally"),
    *("Signatures::Count_Signature", "Signatures::Signature_Summary", "Spicy::*"),
)
"""Notices about the sensor, or that only count others."""
ASSUMED_SEVERITIES: Mapping[str, Severity] = {
    "Heartbleed::SSL_Heartbeat_Attack_Success": Severity.CRITICAL,
    "FTP::Site_Exec_Success": Severity.HIGH,
    "HTTP::SQL_Injection_*": Severity.HIGH,
    "Heartbleed::*": Severity.HIGH,
    "Intel::Notice": Severity.HIGH,
    "SSH::Login_By_Password_Guesser": Severity.HIGH,
    "TeamCymruMalwareHashRegistry::Match": Severity.HIGH,
    "ATTACK::Discovery": Severity.MEDIUM,
    "ATTACK::*": Severity.HIGH,
    "Scan::*": Severity.LOW,
    "Software::*": Severity.LOW,
    "SSL::Certificate_Expires_Soon": Severity.INFORMATIONAL,
    "SSL::*": Severity.LOW,
    "ProtocolDetector::*": Severity.LOW,
    "Traceroute::Detected": Severity.LOW,
}
"""Severities by notice type; the first that matches counts, any other type is Medium."""
TECHNIQUES: Mapping[str, tuple[str, ...]] = {
    "FTP::Bruteforcing": ("T1110",),
    "SSH::Password_Guessing": ("T1110",),
    "SSH::Login_By_Password_Guesser": ("T1110", "T1078"),
    "Scan::*": ("T1046",),
    "HTTP::SQL_Injection_*": ("T1190",),
    "Heartbleed::*": ("T1190",),
    "FTP::Site_Exec_Success": ("T1190",),
    "Traceroute::Detected": ("T1016",),
}
"""Techniques that a type detects by its definition."""
NAMES_OF_VICTIMS = ("HTTP::SQL_Injection_Victim",)
"""Types whose `src` is the attacked host."""
NAMES_OF_PROPERTIES = ("Software::*", "SSL::*", "CVE_2020_0601::*")
"""Types about a property of `src`, not about what it does."""
SUBJECTS: Mapping[str, FieldContent] = {
    "SSH::Interesting_Hostname_Login": FieldContent.NAME,
    "TeamCymruMalwareHashRegistry::Match": FieldContent.FILE_HASH,
}
"""Content of `sub` by type."""


def match_notice(note: str, patterns: Mapping[str, T]) -> T | None:
    """Return the value of the first pattern that matches a notice type, or None."""
    return next((value for pattern, value in patterns.items() if fnmatchcase(note, pattern)), None)
