"""Mapping of EVE alert records to incidents, their entities and techniques."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from itertools import chain
from typing import Any

from tocsin import Alert, Entity, EntityKind, Incident, Severity, parse_tactics
from tocsin_connectors.siem.files import name_alert, name_group
from tocsin_connectors.siem.records import (
    EntityRoles,
    FlowPaths,
    child,
    children,
    describe_value,
    find_flow,
    normalize_address,
    number,
    parse_entities,
    parse_host,
    parse_utc,
    require_text,
    text,
    texts,
    union,
)

_CVE = re.compile(r"(?:CVE[_-])?(\d{4})[_-](\d{4,})", re.IGNORECASE)
_CVE_IN_TEXT = re.compile(r"\bCVE[-_ ](\d{4})[-_ ](\d{4,7})\b", re.IGNORECASE)
_TECHNIQUE = re.compile(r"(T\d{4})(?:[._](\d{3}))?", re.IGNORECASE)
_HASH = re.compile(r"(?:[0-9a-fA-F]{32}){1,4}|[0-9a-fA-F]{40}")
_MAIL_ADDRESS = re.compile(r"[^\s<>\",;:@]{1,64}@[\w.-]{1,255}")
_MAIL_MEMBERS = ("mail_from", "rcpt_to", "from", "to", "cc")
_HTTP_PORT = 80


def find_entities(record: dict[str, Any]) -> Iterator[Entity]:
    """Yield the entities of a record. Invalid values are skipped."""
    for key in ("src_ip", "dest_ip"):
        yield from parse_host(text(record, key) or "", EntityKind.IP)
    for key in (key for key in _FINDERS if key in record):
        for part in children(record, key):
            yield from _FINDERS[key](part)
    alert = child(record, "alert")
    named = (_CVE.fullmatch(name) for name in texts(child(alert, "metadata"), "cve"))
    written = _CVE_IN_TEXT.finditer(text(alert, "signature") or "")
    for match in chain(named, written):
        if match:
            yield Entity(EntityKind.CVE, f"CVE-{match[1]}-{match[2]}")


def find_endpoints(record: dict[str, Any]) -> tuple[list[Entity], list[Entity]]:
    """Return client and server, or attacker and victim if a rule names them (keyword `target`).

    The addresses of an alert are those of one packet.
    """
    alert = child(record, "alert")
    sides = [children(alert, key) for key in ("source", "target")]
    attacker, victim = ([one for part in side for one in _find_address(part)] for side in sides)
    if attacker or victim:
        return attacker, victim
    flow = child(record, "flow")
    holder = flow if text(flow, "src_ip") else record
    keys = ("src_ip", "dest_ip")
    if holder is record and text(record, "direction") == "to_client":
        keys = ("dest_ip", "src_ip")
    one, other = (list(parse_host(text(holder, key) or "", EntityKind.IP)) for key in keys)
    return one, other


def find_roles(record: dict[str, Any]) -> EntityRoles:
    """Return the endpoints as source and target, and the sender and the recipients of a mail.

    The name in a request (`Host`, SNI) is chosen by the client, and has no role.
    """
    client, server = find_endpoints(record)
    senders, receivers = (
        [
            address
            for key, members in (("smtp", smtp), ("email", email))
            for address in find_mail_addresses(child(record, key), members)
        ]
        for smtp, email in ((("mail_from",), ("from",)), (("rcpt_to",), ("to", "cc")))
    )
    return EntityRoles(union([client, senders]), union([server, receivers]))


def _find_address(side: dict[str, Any]) -> Iterator[Entity]:
    yield from parse_host(text(side, "ip") or "", EntityKind.IP)


def find_techniques(record: dict[str, Any]) -> Iterator[str]:
    """Yield the ATT&CK techniques in the signature's metadata."""
    metadata = child(child(record, "alert"), "metadata")
    for name in (*texts(metadata, "mitre_technique_id"), *texts(metadata, "mitre_attack")):
        if match := _TECHNIQUE.fullmatch(name):
            yield ".".join(part.upper() for part in match.groups() if part)


def find_signature_tactics(alert: dict[str, Any]) -> Iterator[str]:
    """Yield the ATT&CK tactics in the signature's metadata."""
    metadata = child(alert, "metadata")
    for name in ("mitre_tactic_id", "mitre_tactic_name", "mitre_attack"):
        yield from parse_tactics(texts(metadata, name))


def find_web_entities(http: dict[str, Any]) -> Iterator[Entity]:
    """Yield the requested site and page."""
    hostname, url = text(http, "hostname"), text(http, "url")
    if hostname:
        yield from parse_host(hostname, EntityKind.DOMAIN)
    if url and "://" in url.partition("?")[0]:  # proxy request
        yield Entity(EntityKind.URL, url)
    elif url and url.startswith("/") and hostname:
        port = number(http, "http_port") or _HTTP_PORT
        place = hostname if port == _HTTP_PORT else f"{hostname}:{port}"
        yield Entity(EntityKind.URL, f"http://{place}{url}")


def _find_names(dns: dict[str, Any]) -> Iterator[Entity]:
    asked = chain.from_iterable(children(dns, key) for key in ("queries", "query"))
    for question in [dns, *asked]:
        if name := text(question, "rrname"):
            yield from parse_host(name, EntityKind.DOMAIN)


def _find_server(handshake: dict[str, Any]) -> Iterator[Entity]:
    if name := text(handshake, "sni"):
        yield from parse_host(name, EntityKind.DOMAIN)


def find_hashes(file: dict[str, Any]) -> Iterator[Entity]:
    """Yield the digests of a file."""
    for key in ("sha256", "sha1", "md5"):
        if (value := text(file, key)) and _HASH.fullmatch(value):
            yield Entity(EntityKind.FILE_HASH, value)


def find_mail_addresses(
    message: dict[str, Any], members: Iterable[str] = _MAIL_MEMBERS
) -> Iterator[Entity]:
    """Yield the addresses in these members of a message, by default its sender and receivers."""
    for key in members:
        for value in texts(message, key):
            if match := _MAIL_ADDRESS.search(value):
                yield Entity(EntityKind.EMAIL, match[0])


def _find_kerberos_account(kerberos: dict[str, Any]) -> Iterator[Entity]:
    yield from _parse_names(EntityKind.USER, texts(kerberos, "cname"))


def _find_shares(smb: dict[str, Any]) -> Iterator[Entity]:
    """Yield account, workstation and files of a session. Names on a pipe are services."""
    login, rename = child(smb, "ntlmssp"), child(smb, "rename")
    yield from _parse_names(EntityKind.USER, texts(login, "user"))
    yield from _parse_names(EntityKind.HOST, texts(login, "host"))
    if (text(smb, "share_type") or "").upper() != "PIPE":
        names = [*texts(smb, "filename"), *texts(rename, "from"), *texts(rename, "to")]
        yield from _parse_names(EntityKind.FILE, names)


def _find_ftp_entities(ftp: dict[str, Any]) -> Iterator[Entity]:
    kind = _FTP_COMMANDS.get((text(ftp, "command") or "").upper())
    if kind is not None:
        yield from _parse_names(kind, texts(ftp, "command_data"))


def _find_stored_files(transfer: dict[str, Any]) -> Iterator[Entity]:
    """Yield the files of FTP data, NFS and TFTP."""
    yield from _parse_names(
        EntityKind.FILE, [*texts(transfer, "filename"), *texts(transfer, "file")]
    )


def _find_lease(dhcp: dict[str, Any]) -> Iterator[Entity]:
    yield from _parse_names(EntityKind.HOST, texts(dhcp, "hostname"))
    address = text(dhcp, "assigned_ip") or ""
    if address not in _UNASSIGNED:
        yield from parse_host(address, EntityKind.IP)


_FTP_COMMANDS = {
    "USER": EntityKind.USER,
    **dict.fromkeys(("RETR", "STOR", "STOU", "APPE", "DELE"), EntityKind.FILE),
}
_UNASSIGNED = frozenset({"0.0.0.0", "::"})  # noqa: S104 - no address is bound


def _parse_names(kind: EntityKind, values: list[str]) -> Iterator[Entity]:
    """Yield the entities in names, without placeholders such as `<empty>` and `<share_root>`."""
    for value in values:
        if not (value.startswith("<") and value.endswith(">")):
            yield from parse_entities(kind, value)


_FINDERS: dict[str, Callable[[dict[str, Any]], Iterator[Entity]]] = {
    "http": find_web_entities,
    "dns": _find_names,
    "tls": _find_server,
    "quic": _find_server,
    "files": find_hashes,
    "fileinfo": find_hashes,
    "smtp": find_mail_addresses,
    "email": find_mail_addresses,
    "krb5": _find_kerberos_account,
    "smb": _find_shares,
    "ftp": _find_ftp_entities,
    "ftp_data": _find_stored_files,
    "nfs": _find_stored_files,
    "tftp": _find_stored_files,
    "dhcp": _find_lease,
}
"""Finders of entities by protocol member."""


_SEVERITIES = {
    "critical": Severity.CRITICAL,
    "major": Severity.HIGH,
    "minor": Severity.LOW,
    "informational": Severity.INFORMATIONAL,
}
_LOWEST_PRIORITY = 255  # see the documentation of the rule keyword `priority`
_PRIORITIES = {1: Severity.HIGH, 2: Severity.MEDIUM, 3: Severity.LOW}
_IDENTITY_FIELDS = ("flow_id", "tx_id", "timestamp", "src_ip", "src_port", "dest_ip", "dest_port")
_COUNTERS = ("pkts_toserver", "pkts_toclient", "bytes_toserver", "bytes_toclient")
"""Counters of the flow, which tell alerts of one microsecond apart."""

_FLOW = FlowPaths(
    source=("src_ip",),
    source_port=("src_port",),
    target=("dest_ip",),
    target_port=("dest_port",),
    protocol=("proto",),
    direction=("direction",),
)


def build_incident(record: dict[str, Any], window: timedelta) -> Incident:
    """Return the incident of an alert, by signature, source and clock interval.

    Raises ValueError if the signature or a valid timestamp is missing.
    """
    alert = child(record, "alert")
    signature = _get_signature(alert)
    occurred_at = parse_timestamp(record)
    severity, raw_severity = _parse_severity(alert)
    name = text(alert, "signature")
    title = name or f"Suricata signature {signature}"
    detection = Alert(
        external_id=_build_alert_id(record, signature),
        title=title,
        severity=severity or Severity.MEDIUM,
        occurred_at=occurred_at,
        rule=name or signature,
        flow=find_flow(record, _FLOW),
        record=record,
    )
    roles = find_roles(record)
    source = normalize_address(text(record, "src_ip") or "") or "-"
    return Incident(
        external_id=name_group(occurred_at, window, signature, source),
        title=title,
        description=_describe(record, alert),
        severity=detection.severity,
        raw_severity=raw_severity,
        severity_assumed=severity is None,
        occurred_at=occurred_at,
        techniques=union([find_techniques(record)]),
        tactics=union([find_signature_tactics(alert)]),
        entities=union([find_entities(record)]),
        sources=roles.sources,
        targets=roles.targets,
        alerts=(detection,),
    )


def _get_signature(alert: dict[str, Any]) -> str:
    generator, signature = number(alert, "gid"), number(alert, "signature_id")
    if signature is None:
        raise ValueError(f"alert.signature_id is {describe_value(alert.get('signature_id'))}")
    return f"{1 if generator is None else generator}:{signature}"


def parse_timestamp(record: dict[str, Any]) -> datetime:
    """Return the record's timestamp. Raises ValueError if it has none."""
    return parse_utc(require_text(record, "timestamp"))


def _build_alert_id(record: dict[str, Any], signature: str) -> str:
    flow = child(record, "flow")
    values = [record.get(key) for key in (*_IDENTITY_FIELDS, "pcap_cnt")]
    values += [flow.get(key) for key in _COUNTERS]
    return name_alert([signature, *values])


def _parse_severity(alert: dict[str, Any]) -> tuple[Severity | None, str | None]:
    """Return the severity, or None if unknown, and Suricata's own value."""
    severities = texts(child(alert, "metadata"), "signature_severity")
    for word in severities:
        if severity := _SEVERITIES.get(word.casefold()):
            return severity, word
    priority = number(alert, "severity")
    raw = None if priority is None else str(priority)
    if priority is None or not 1 <= priority <= _LOWEST_PRIORITY:
        return None, next(iter(severities), raw)
    return _PRIORITIES.get(priority, Severity.INFORMATIONAL), raw


def _describe(record: dict[str, Any], alert: dict[str, Any]) -> str:
    """Describe the alert: `Attempted Recon: Suricata allowed this TCP traffic (http).`"""
    category, protocol = text(alert, "category"), text(record, "app_proto")
    action = text(alert, "action") or "saw"
    sentence = f"Suricata {action} this {text(record, 'proto') or 'network'} traffic"
    sentence += f" ({protocol})." if protocol and protocol != "failed" else "."
    return f"{category}: {sentence}" if category else sentence
