"""Log tables of a workspace, beside those of advanced hunting.

https://learn.microsoft.com/azure/azure-monitor/reference/tables-index
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tocsin import EntityKind, RelationType
from tocsin_connectors.siem.microsoft.tables import (
    HUNTING_TABLES,
    ColumnRelation,
    EntityColumns,
    LogTable,
)

_SIGN_IN: EntityColumns = {
    EntityKind.USER: ("UserPrincipalName",),
    EntityKind.IP: ("IPAddress",),
}
_SIGNED_IN = ("UserPrincipalName", "AppDisplayName", "IPAddress", "Location", "ResultDescription")
_FLOW: EntityColumns = {
    EntityKind.IP: ("SrcIpAddr", "DstIpAddr"),
    EntityKind.HOST: ("SrcHostname", "DstHostname", "DvcHostname"),
    EntityKind.USER: ("SrcUsername", "DstUsername"),
}
_FLOWS = (ColumnRelation("SrcIpAddr", RelationType.CONNECTED_TO, "DstIpAddr"),)

WORKSPACE_TABLES = (
    LogTable(name="SigninLogs", what="sign-in", columns=_SIGN_IN, shown=_SIGNED_IN),
    LogTable(
        name="AADNonInteractiveUserSignInLogs",
        what="sign-in",
        columns=_SIGN_IN,
        shown=_SIGNED_IN,
    ),
    LogTable(
        name="AzureActivity",
        what="Azure",
        columns={
            EntityKind.USER: ("Caller",),
            EntityKind.IP: ("CallerIpAddress",),
            EntityKind.CLOUD_RESOURCE: ("_ResourceId",),
        },
        shown=("OperationNameValue", "ActivityStatusValue", "Caller", "_ResourceId"),
    ),
    LogTable(
        name="OfficeActivity",
        what="Microsoft 365",
        columns={EntityKind.USER: ("UserId",), EntityKind.IP: ("ClientIP", "ActorIpAddress")},
        shown=("Operation", "OfficeWorkload", "UserId", "OfficeObjectId"),
    ),
    LogTable(
        name="SecurityEvent",
        what="Windows",
        columns={
            EntityKind.HOST: ("Computer",),
            EntityKind.IP: ("IpAddress",),
            EntityKind.USER: ("Account", "TargetAccount", "SubjectAccount"),
            EntityKind.PROCESS: ("Process",),
            EntityKind.FILE: ("NewProcessName",),
        },
        shown=("Activity", "Account", "IpAddress", "Computer", "NewProcessName", "CommandLine"),
    ),
    LogTable(
        name="Syslog",
        what="syslog",
        columns={
            EntityKind.HOST: ("HostName", "Computer"),
            EntityKind.IP: ("HostIP",),
            EntityKind.PROCESS: ("ProcessName",),
        },
        shown=("ProcessName", "SyslogMessage", "HostName", "Facility", "SeverityLevel"),
    ),
    LogTable(
        name="CommonSecurityLog",
        what="device",
        columns={
            EntityKind.IP: ("SourceIP", "DestinationIP"),
            EntityKind.HOST: ("SourceHostName", "DestinationHostName", "Computer"),
            EntityKind.USER: ("SourceUserName", "DestinationUserName"),
            EntityKind.URL: ("RequestURL",),
            EntityKind.FILE_HASH: ("FileHash",),
            EntityKind.FILE: ("FilePath", "FileName"),
        },
        shown=(
            "Activity",
            "DeviceAction",
            "SourceIP",
            "DestinationIP",
            "DestinationPort",
            "RequestURL",
            "DeviceVendor",
            "DeviceProduct",
        ),
        ties=(ColumnRelation("SourceIP", RelationType.CONNECTED_TO, "DestinationIP"),),
    ),
    LogTable(
        name="DnsEvents",
        what="DNS",
        columns={
            EntityKind.IP: ("ClientIP",),
            EntityKind.DOMAIN: ("Name",),
            EntityKind.HOST: ("Computer",),
        },
        shown=("SubType", "ClientIP", "Name", "IPAddresses", "Result"),
    ),
    LogTable(
        name="W3CIISLog",
        what="web",
        columns={
            EntityKind.IP: ("cIP", "sIP"),
            EntityKind.USER: ("csUserName",),
            EntityKind.HOST: ("Computer",),
        },
        shown=("csMethod", "csUriStem", "scStatus", "cIP", "csUserName", "Computer"),
        ties=(ColumnRelation("cIP", RelationType.CONNECTED_TO, "sIP"),),
    ),
    LogTable(
        name="AWSCloudTrail",
        what="AWS",
        columns={
            EntityKind.IP: ("SourceIpAddress",),
            EntityKind.USER: ("UserIdentityUserName",),
            EntityKind.CLOUD_RESOURCE: ("UserIdentityArn",),
        },
        shown=("EventName", "EventSource", "UserIdentityArn", "SourceIpAddress", "ErrorCode"),
    ),
    LogTable(
        name="ASimNetworkSessionLogs",
        what="network",
        columns=_FLOW,
        shown=("EventResult", "SrcIpAddr", "DstIpAddr", "DstPortNumber", "DvcAction"),
        ties=_FLOWS,
    ),
    LogTable(
        name="ASimWebSessionLogs",
        what="web",
        columns={**_FLOW, EntityKind.URL: ("Url",)},
        shown=("EventResult", "SrcIpAddr", "Url", "SrcUsername", "HttpUserAgent"),
        ties=_FLOWS,
    ),
    LogTable(
        name="ASimDnsActivityLogs",
        what="DNS",
        columns={**_FLOW, EntityKind.DOMAIN: ("DnsQuery",)},
        shown=("DnsQuery", "SrcIpAddr", "DnsResponseName", "EventResultDetails"),
    ),
    LogTable(
        name="ASimAuthenticationEventLogs",
        what="sign-in",
        columns={
            EntityKind.USER: ("TargetUsername", "ActorUsername"),
            EntityKind.IP: ("SrcIpAddr", "TargetIpAddr"),
            EntityKind.HOST: ("SrcHostname", "TargetHostname"),
        },
        shown=("EventType", "EventResult", "TargetUsername", "SrcIpAddr", "TargetHostname"),
        ties=(
            ColumnRelation(
                "TargetUsername",
                RelationType.LOGGED_ON_TO,
                "TargetHostname",
                ("EventResult", "Success"),
            ),
        ),
    ),
    LogTable(
        name="SecurityAlert",
        what="alert",
        columns={},
        mentions=dict.fromkeys(
            (
                EntityKind.IP,
                EntityKind.URL,
                EntityKind.DOMAIN,
                EntityKind.FILE_HASH,
                EntityKind.EMAIL,
                EntityKind.MAILBOX,
            ),
            ("Entities",),
        ),
        shown=("AlertName", "AlertSeverity", "ProductName", "CompromisedEntity", "SystemAlertId"),
    ),
)


def list_tables(own: Mapping[str, Mapping[EntityKind, tuple[str, ...]]]) -> Iterable[LogTable]:
    """Return the searched tables: the built-in ones and the operator's own."""
    tables = {table.name: table for table in (*HUNTING_TABLES, *WORKSPACE_TABLES)}
    tables |= {
        name: LogTable(name=name, what=name, columns=columns, shown=_list_columns(columns))
        for name, columns in own.items()
    }
    return tables.values()


def _list_columns(columns: Mapping[EntityKind, tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for names in columns.values() for name in names))
