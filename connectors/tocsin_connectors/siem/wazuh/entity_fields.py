"""Fields of Wazuh 4 alerts that hold entities, by family of decoders.

https://documentation.wazuh.com/current/user-manual/ruleset/ruleset-xml-syntax/decoders.html
"""

from __future__ import annotations

from tocsin_connectors.siem.entity_fields import FieldContent, FieldTable
from tocsin_connectors.siem.indices.ecs_fields import declare_windows_fields

_STATIC = FieldTable(  # the fields of decoders in XML, and their usual companions
    prefix="data.",
    sources={
        FieldContent.ADDRESS: ("srcip", "src_ip", "client_ip", "remote_ip"),
        FieldContent.USER: ("srcuser",),
    },
    targets={
        FieldContent.ADDRESS: ("dstip", "dest_ip", "dst_ip"),
        FieldContent.USER: ("dstuser",),
    },
    others={
        FieldContent.HOST: ("hostname", "system_name"),
        FieldContent.USER: ("user",),
        FieldContent.DOMAIN: ("domain",),
        FieldContent.URL: ("url",),
        FieldContent.FILE: ("file",),
        FieldContent.FILE_HASH: ("md5", "sha1", "sha256"),
        FieldContent.TEXT: ("title",),
    },
)
_WINDOWS = declare_windows_fields("data.win.eventdata.", is_camel_case=True) | FieldTable(
    others={FieldContent.HOST: ("data.win.system.computer",)}
)
_LINUX_AUDIT = FieldTable(
    prefix="data.audit.",
    others={
        FieldContent.ADDRESS: ("srcip", "addr"),
        FieldContent.USER: ("acct",),
        FieldContent.PROGRAM: ("exe", "command"),
        FieldContent.FILE: ("file.name",),
    },
)
_FILE_INTEGRITY = FieldTable(
    prefix="syscheck.",
    others={
        FieldContent.FILE: ("path",),
        FieldContent.FILE_HASH: ("md5_after", "sha1_after", "sha256_after"),
        FieldContent.USER: (
            *("uname_after", "audit.user.name", "audit.effective_user.name"),
            "audit.login_user.name",
        ),
        FieldContent.PROGRAM: ("audit.process.name",),
    },
)
_REMOTE = "remoteIpDetails.ipAddressV4"
_AWS = FieldTable(  # CloudTrail, GuardDuty, VPC flow logs, WAF
    prefix="data.aws.",
    sources={
        FieldContent.ADDRESS: (
            *("sourceIPAddress", "source_ip_address", "srcaddr", "httpRequest.clientIp"),
            f"service.action.awsApiCallAction.{_REMOTE}",
            f"service.action.portProbeAction.portProbeDetails.{_REMOTE}",
        ),
    },
    targets={
        FieldContent.ADDRESS: ("dstaddr",),
        FieldContent.USER: ("requestParameters.userName",),
    },
    others={
        FieldContent.ADDRESS: (
            f"service.action.networkConnectionAction.{_REMOTE}",
            "service.action.networkConnectionAction.localIpDetails.ipAddressV4",
            "resource.instanceDetails.networkInterfaces.privateIpAddress",
            "resource.instanceDetails.networkInterfaces.publicIp",
        ),
        FieldContent.HOST: (
            "resource.instanceDetails.networkInterfaces.privateDnsName",
            "resource.instanceDetails.networkInterfaces.publicDnsName",
        ),
        FieldContent.DOMAIN: ("service.action.dnsRequestAction.domain",),
        FieldContent.USER: (
            *("userIdentity.userName", "userIdentity.sessionContext.sessionIssuer.userName"),
            "resource.accessKeyDetails.userName",
        ),
        FieldContent.CLOUD_RESOURCE: (
            *("userIdentity.arn", "resources.ARN", "resource.instanceDetails.instanceId"),
            *("resource.instanceDetails.iamInstanceProfile.arn", "resource.s3BucketDetails.arn"),
        ),
        FieldContent.TEXT: ("description",),
    },
)
_AZURE = FieldTable(
    sources={
        FieldContent.ADDRESS: (
            *("data.azure.callerIpAddress", "data.azure.properties.ipAddress"),
            *("data.ms-graph.ipAddress", "data.ms-graph.evidence.ipAddress"),
        ),
    },
    others={
        FieldContent.PRINCIPAL: (
            *("data.azure.identity", "data.azure.properties.userPrincipalName"),
            *(
                "data.ms-graph.userPrincipalName",
                "data.ms-graph.initiatedBy.user.userPrincipalName",
            ),
            "data.ms-graph.evidence.userAccount.userPrincipalName",
        ),
        FieldContent.CLOUD_RESOURCE: ("data.azure.resourceId",),
        FieldContent.TEXT: ("data.ms-graph.description",),
    },
)
_OFFICE = FieldTable(  # https://learn.microsoft.com/office/office-365-management-api/office-365-management-activity-api-schema
    prefix="data.office365.",
    sources={FieldContent.ADDRESS: ("ClientIP", "ClientIPAddress", "ActorIpAddress")},
    targets={FieldContent.PRINCIPAL: ("TargetUserOrGroupName",)},
    others={
        FieldContent.PRINCIPAL: ("UserId",),
        FieldContent.MAILBOX: ("MailboxOwnerUPN",),
        FieldContent.URL: ("ObjectId", "SiteUrl"),
        FieldContent.FILE: ("SourceFileName",),
    },
)
_GOOGLE = FieldTable(
    prefix="data.gcp.",
    sources={
        FieldContent.ADDRESS: (
            *("jsonPayload.sourceIP", "jsonPayload.connection.src_ip"),
            "protoPayload.requestMetadata.callerIp",
        ),
    },
    targets={FieldContent.ADDRESS: ("jsonPayload.connection.dest_ip",)},
    others={
        FieldContent.DOMAIN: ("jsonPayload.queryName",),
        FieldContent.PRINCIPAL: ("protoPayload.authenticationInfo.principalEmail",),
        FieldContent.CLOUD_RESOURCE: ("protoPayload.resourceName",),
    },
)
_GITHUB = FieldTable(
    prefix="data.github.",
    sources={FieldContent.ADDRESS: ("actor_ip",), FieldContent.USER: ("actor",)},
    targets={FieldContent.USER: ("user",)},
)
_OKTA = FieldTable(
    prefix="data.okta.",
    sources={FieldContent.ADDRESS: ("client.ipAddress",)},
    targets={FieldContent.PRINCIPAL: ("target.alternateId",)},
    others={FieldContent.PRINCIPAL: ("actor.alternateId",)},
)
_SENSORS = FieldTable(  # Suricata and Zeek in JSON
    prefix="data.",
    sources={FieldContent.ADDRESS: ("id.orig_h",)},
    targets={FieldContent.ADDRESS: ("id.resp_h",)},
    others={
        FieldContent.NAME: ("http.hostname",),
        FieldContent.DOMAIN: ("dns.rrname", "dns.query.rrname", "tls.sni"),
        FieldContent.FILE_HASH: ("fileinfo.md5", "fileinfo.sha1", "fileinfo.sha256"),
    },
)
_SCANNERS = FieldTable(  # VirusTotal, YARA, osquery, vulnerability detection
    prefix="data.",
    others={
        FieldContent.FILE: (
            *("virustotal.source.file", "YARA.scanned_file", "yara.scanned_file"),
            "osquery.columns.path",
        ),
        FieldContent.FILE_HASH: (
            *("virustotal.source.md5", "virustotal.source.sha1", "virustotal.source.sha256"),
            *("osquery.columns.md5", "osquery.columns.sha1", "osquery.columns.sha256"),
        ),
        FieldContent.ADDRESS: ("osquery.columns.remote_address",),
        FieldContent.USER: ("osquery.columns.username",),
        FieldContent.CVE: ("vulnerability.cve",),
    },
)
_ENVELOPE = FieldTable(
    others={
        FieldContent.HOST: ("predecoder.hostname",),
        FieldContent.TEXT: ("rule.description", "wazuh.rule.title", "wazuh.rule.description"),
    }
)

ALERT_FIELDS = (
    _STATIC
    | _WINDOWS
    | _LINUX_AUDIT
    | _FILE_INTEGRITY
    | _AWS
    | _AZURE
    | _OFFICE
    | _GOOGLE
    | _GITHUB
    | _OKTA
    | _SENSORS
    | _SCANNERS
    | _ENVELOPE
)
"""Fields of 4.x, and the texts of rules in both layouts."""
