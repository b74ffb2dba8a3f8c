"""Fields of indexed logs that hold entities: ECS, Windows events, CloudTrail, Okta and Zeek.

https://www.elastic.co/docs/reference/ecs/ecs-field-reference
https://docs.opensearch.org/latest/security-analytics/log-types-reference/
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tocsin_connectors.siem.entity_fields import (
    FieldContent,
    FieldTable,
    TableFinds,
    flatten_record,
)
from tocsin_connectors.siem.records import text_at

_HASHES = ("md5", "sha1", "sha256", "sha384", "sha512")
_HASH_OWNERS = (
    *("file", "process", "process.parent", "dll", "email.attachments.file"),
    *("threat.indicator.file", "threat.enrichments.indicator.file"),
)
_INDICATORS = ("threat.indicator", "threat.enrichments.indicator")

ECS = FieldTable(
    sources={
        FieldContent.ADDRESS: ("source.ip", "client.ip"),
        FieldContent.NAME: ("source.domain", "client.domain"),
        FieldContent.USER: ("source.user.name", "client.user.name"),
        FieldContent.EMAIL: (
            *("email.from.address", "email.sender.address"),
            *("source.user.email", "client.user.email"),
        ),
    },
    targets={
        FieldContent.ADDRESS: ("destination.ip", "server.ip"),
        FieldContent.NAME: ("destination.domain", "server.domain"),
        FieldContent.USER: ("user.target.name", "destination.user.name", "server.user.name"),
        FieldContent.EMAIL: (
            *("email.to.address", "email.cc.address", "email.bcc.address", "user.target.email"),
            *("destination.user.email", "server.user.email"),
        ),
    },
    others={
        FieldContent.ADDRESS: (
            *("host.ip", "dns.resolved_ip", "dns.answers.data", "related.ip"),
            *(f"{indicator}.ip" for indicator in _INDICATORS),
        ),
        FieldContent.HOST: ("host.name", "host.hostname"),
        FieldContent.SHORT_HOST: ("related.hosts",),
        FieldContent.DOMAIN: (
            *("dns.question.name", "url.domain", "tls.client.server_name"),
            *(f"{indicator}.url.domain" for indicator in _INDICATORS),
        ),
        FieldContent.USER: (
            *("user.name", "user.effective.name", "user.changes.name", "process.user.name"),
            *("process.real_user.name", "process.saved_user.name", "file.owner"),
        ),
        FieldContent.EMAIL: (
            *("user.email", "email.reply_to.address"),
            *(f"{indicator}.email.address" for indicator in _INDICATORS),
        ),
        FieldContent.PROGRAM: (
            *("process.executable", "process.name"),
            *("process.parent.executable", "process.parent.name"),
        ),
        FieldContent.FILE: (
            *("file.path", "file.target_path", "dll.path", "email.attachments.file.name"),
            *(f"{indicator}.file.path" for indicator in _INDICATORS),
        ),
        FieldContent.FILE_HASH: (
            *(f"{owner}.hash.{kind}" for owner in _HASH_OWNERS for kind in _HASHES),
            "related.hash",
        ),
        FieldContent.URL: (
            *("url.full", "url.original"),
            *(f"{indicator}.url.full" for indicator in _INDICATORS),
            *(f"{indicator}.url.original" for indicator in _INDICATORS),
        ),
        FieldContent.CVE: ("vulnerability.id",),
        FieldContent.CLOUD_RESOURCE: ("cloud.instance.id", "orchestrator.resource.id"),
        FieldContent.TEXT: ("threat.indicator.description",),
    },
)
"""ECS. `related.user` is left out: it mixes user names with IDs, full names and addresses."""

TENANT_FIELDS = ("host.name", "host.hostname")
_TENANT_MODULES = frozenset({"o365", "azure", "github", "okta", "google_workspace"})
"""Modules whose `host` is the tenant, not a machine."""


def declare_windows_fields(prefix: str, *, is_camel_case: bool) -> FieldTable:
    """Return the fields of Windows events: Security, and Sysmon.

    https://learn.microsoft.com/previous-versions/windows/it-pro/windows-10/security/threat-protection/auditing/advanced-security-audit-policy-settings
    https://learn.microsoft.com/sysinternals/downloads/sysmon#events
    """

    def spell(*names: str) -> list[str]:
        return [f"{name[0].lower()}{name[1:]}" for name in names] if is_camel_case else [*names]

    return FieldTable(
        prefix=prefix,
        sources={
            FieldContent.ADDRESS: spell("IpAddress", "SourceIp", "SourceAddress", "ClientAddress"),
            FieldContent.NAME: spell("SourceHostname"),
        },
        targets={
            FieldContent.ADDRESS: spell("DestinationIp", "DestAddress"),
            FieldContent.NAME: spell("DestinationHostname"),
            FieldContent.USER: spell("TargetUserName"),
        },
        others={
            FieldContent.HOST: spell("Workstation", "WorkstationName", "TargetServerName"),
            FieldContent.DOMAIN: spell("QueryName"),
            FieldContent.USER: spell(
                *("SubjectUserName", "User", "ParentUser", "SourceUser", "TargetUser"),
                "SamAccountName",
            ),
            FieldContent.PROGRAM: spell(
                *("Image", "ParentImage", "SourceImage", "TargetImage"),
                *("NewProcessName", "ParentProcessName", "ProcessName", "CallerProcessName"),
            ),
            FieldContent.FILE: spell("ImageLoaded", "TargetFilename"),
            FieldContent.FILE_HASH: spell("Hashes", "Hash"),
        },
    )


LOGS = (
    declare_windows_fields("winlog.event_data.", is_camel_case=False)
    | declare_windows_fields("", is_camel_case=False)
    | FieldTable(  # CloudTrail, https://docs.aws.amazon.com/awscloudtrail/latest/userguide/
        sources={FieldContent.ADDRESS: ("sourceIPAddress",)},
        others={
            FieldContent.USER: ("userIdentity.userName",),
            FieldContent.CLOUD_RESOURCE: ("userIdentity.arn", "resources.ARN"),
        },
    )
    | FieldTable(  # Okta, https://developer.okta.com/docs/api/openapi/okta-management/
        sources={FieldContent.ADDRESS: ("client.ipAddress",)},
        others={FieldContent.PRINCIPAL: ("actor.alternateId", "target.alternateId")},
    )
    | FieldTable(  # Zeek, https://docs.zeek.org/en/current/logs/
        sources={FieldContent.ADDRESS: ("id.orig_h",)},
        targets={FieldContent.ADDRESS: ("id.resp_h",)},
    )
    | FieldTable(  # flat names that network logs share
        sources={
            FieldContent.ADDRESS: (
                *("src_ip", "srcip", "src_addr", "client_ip", "clientip", "remote_ip", "SourceIp"),
            ),
            FieldContent.USER: ("srcuser",),
        },
        targets={
            FieldContent.ADDRESS: ("dest_ip", "dstip", "dst_ip", "dst_addr", "DestinationIp"),
            FieldContent.USER: ("dstuser",),
        },
        others={
            FieldContent.HOST: ("winlog.computer_name", "Computer"),
            FieldContent.DOMAIN: ("dns.rrname", "tls.sni"),
        },
    )
)
"""Logs of Security Analytics whose fields are not those of ECS."""

_EVERY = ECS | LOGS
_EVERY_OF_TENANTS = _EVERY.without(TENANT_FIELDS)


def find_log_entities(document: Any, limit: int) -> TableFinds:
    """Return the entities in a document in ECS, or with the fields of well-known logs."""
    return (_EVERY_OF_TENANTS if is_of_tenant(document) else _EVERY).find(document, limit)


def is_of_tenant(document: Any) -> bool:
    """Return whether `host` in a document is the tenant of a cloud service."""
    return (text_at(document, "event.module") or "") in _TENANT_MODULES


def find_ecs_techniques(document: Any) -> Iterator[str]:
    """Yield the values of ECS fields for ATT&CK techniques."""
    for path, value in flatten_record(document):
        if path in {"threat.technique.id", "threat.technique.subtechnique.id"}:
            yield value
