"""Tables of logs and the entities in their columns, with the tables of advanced hunting.

The Defender XDR connector copies the hunting tables to Sentinel as well:
https://learn.microsoft.com/defender-xdr/advanced-hunting-schema-tables
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tocsin import EntityKind, RelationType

LogColumn = str | tuple[str, str]
"""A column, or the columns of an account: domain and name."""
EntityColumns = Mapping[EntityKind, tuple[LogColumn, ...]]


@dataclass(frozen=True, slots=True)
class ColumnRelation:
    """Relation between the entities of two columns."""

    source: LogColumn
    type: RelationType
    target: LogColumn
    only: tuple[str, str] | None = None
    """Column and value that are required, such as `ActionType` and `LogonSuccess`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogTable:
    """One table of logs."""

    name: str
    what: str
    """Description of a row: `sign-in`."""
    columns: EntityColumns
    """Columns that hold one entity, by kind."""
    mentions: EntityColumns = field(default_factory=dict)
    """Columns that hold JSON with entities."""
    shown: tuple[str, ...] = ()
    """Columns that describe the event, most important first."""
    ties: tuple[ColumnRelation, ...] = ()


_ACCOUNT: LogColumn = ("AccountDomain", "AccountName")
_INITIATOR: LogColumn = ("InitiatingProcessAccountDomain", "InitiatingProcessAccountName")
_PROGRAM = "InitiatingProcessFileName"
_PROGRAMS: tuple[LogColumn, ...] = (_PROGRAM, "InitiatingProcessParentFileName")
_USERS: tuple[LogColumn, ...] = ("AccountUpn", _ACCOUNT)
_INITIATORS: tuple[LogColumn, ...] = ("InitiatingProcessAccountUpn", _INITIATOR)
_HASH_COLUMNS: tuple[LogColumn, ...] = ("SHA256", "SHA1", "MD5")
_INITIATOR_HASHES: tuple[LogColumn, ...] = (
    *("InitiatingProcessSHA256", "InitiatingProcessSHA1", "InitiatingProcessMD5"),
)
_HOST_COLUMNS: EntityColumns = {EntityKind.HOST: ("DeviceName",)}
_FILE_COLUMNS: EntityColumns = {
    EntityKind.FILE: ("FolderPath", "FileName"),
    EntityKind.FILE_HASH: (*_HASH_COLUMNS, *_INITIATOR_HASHES),
}
_IDENTITY: EntityColumns = {
    EntityKind.USER: _USERS,
    EntityKind.IP: ("IPAddress", "DestinationIPAddress"),
    EntityKind.HOST: ("DeviceName", "DestinationDeviceName"),
}
_SIGN_IN: EntityColumns = {
    EntityKind.USER: ("AccountUpn",),
    EntityKind.IP: ("IPAddress",),
    EntityKind.HOST: ("DeviceName",),
}
_SIGNED_IN = ("Application", "AccountUpn", "IPAddress", "Country", "ErrorCode")
_MAIL_COLUMNS: EntityColumns = {
    EntityKind.EMAIL: ("SenderFromAddress", "SenderMailFromAddress", "RecipientEmailAddress"),
    EntityKind.MAILBOX: ("RecipientEmailAddress",),
}

HUNTING_TABLES = (
    LogTable(
        name="DeviceNetworkEvents",
        what="network",
        columns={
            **_HOST_COLUMNS,
            EntityKind.IP: ("RemoteIP", "LocalIP"),
            EntityKind.URL: ("RemoteUrl",),
            EntityKind.DOMAIN: ("RemoteUrl",),
            EntityKind.USER: _INITIATORS,
            EntityKind.PROCESS: _PROGRAMS,
            EntityKind.FILE_HASH: _INITIATOR_HASHES,
        },
        shown=("ActionType", _PROGRAM, "RemoteIP", "RemotePort", "RemoteUrl", "DeviceName"),
        ties=(
            ColumnRelation(
                "DeviceName",
                RelationType.CONNECTED_TO,
                "RemoteIP",
                ("ActionType", "ConnectionSuccess"),
            ),
            ColumnRelation(_PROGRAM, RelationType.EXECUTED_ON, "DeviceName"),
        ),
    ),
    LogTable(
        name="DeviceProcessEvents",
        what="process",
        columns={
            **_HOST_COLUMNS,
            **_FILE_COLUMNS,
            EntityKind.PROCESS: ("FileName", *_PROGRAMS),
            EntityKind.USER: (*_USERS, *_INITIATORS),
        },
        shown=("ActionType", "ProcessCommandLine", "FileName", _PROGRAM, "DeviceName"),
        ties=(
            ColumnRelation("FileName", RelationType.EXECUTED_ON, "DeviceName"),
            ColumnRelation(_PROGRAM, RelationType.STARTED, "FileName"),
        ),
    ),
    LogTable(
        name="DeviceLogonEvents",
        what="logon",
        columns={
            EntityKind.HOST: ("DeviceName", "RemoteDeviceName"),
            EntityKind.IP: ("RemoteIP",),
            EntityKind.USER: _USERS,
            EntityKind.PROCESS: _PROGRAMS,
            EntityKind.FILE_HASH: _INITIATOR_HASHES,
        },
        shown=("ActionType", "LogonType", "AccountName", "RemoteIP", "DeviceName", "FailureReason"),
        ties=(
            ColumnRelation(
                _ACCOUNT, RelationType.LOGGED_ON_TO, "DeviceName", ("ActionType", "LogonSuccess")
            ),
            ColumnRelation("RemoteIP", RelationType.CONNECTED_TO, "DeviceName"),
        ),
    ),
    LogTable(
        name="DeviceFileEvents",
        what="file",
        columns={
            **_HOST_COLUMNS,
            **_FILE_COLUMNS,
            EntityKind.IP: ("FileOriginIP", "RequestSourceIP"),
            EntityKind.URL: ("FileOriginUrl",),
            EntityKind.USER: _INITIATORS,
            EntityKind.PROCESS: _PROGRAMS,
        },
        shown=("ActionType", "FolderPath", "FileName", _PROGRAM, "DeviceName"),
        ties=(ColumnRelation("SHA256", RelationType.DOWNLOADED_FROM, "FileOriginUrl"),),
    ),
    LogTable(
        name="DeviceEvents",
        what="device",
        columns={
            **_FILE_COLUMNS,
            EntityKind.HOST: ("DeviceName", "RemoteDeviceName"),
            EntityKind.IP: ("RemoteIP", "LocalIP"),
            EntityKind.URL: ("RemoteUrl",),
            EntityKind.DOMAIN: ("RemoteUrl",),
            EntityKind.USER: (*_USERS, *_INITIATORS),
            EntityKind.PROCESS: _PROGRAMS,
        },
        shown=("ActionType", "FileName", "RemoteIP", "RemoteUrl", _PROGRAM, "DeviceName"),
    ),
    LogTable(
        name="DeviceRegistryEvents",
        what="registry",
        columns={
            **_HOST_COLUMNS,
            EntityKind.USER: _INITIATORS,
            EntityKind.PROCESS: _PROGRAMS,
            EntityKind.FILE_HASH: _INITIATOR_HASHES,
        },
        shown=("ActionType", "RegistryKey", "RegistryValueName", _PROGRAM, "DeviceName"),
    ),
    LogTable(
        name="DeviceImageLoadEvents",
        what="image load",
        columns={
            **_HOST_COLUMNS,
            **_FILE_COLUMNS,
            EntityKind.USER: _INITIATORS,
            EntityKind.PROCESS: _PROGRAMS,
        },
        shown=("ActionType", "FolderPath", "FileName", _PROGRAM, "DeviceName"),
    ),
    LogTable(
        name="DeviceInfo",
        what="device state",
        columns={**_HOST_COLUMNS, EntityKind.IP: ("PublicIP",)},
        mentions={EntityKind.USER: ("LoggedOnUsers",)},
        shown=("DeviceName", "OSPlatform", "PublicIP", "OnboardingStatus"),
    ),
    LogTable(
        name="AlertEvidence",
        what="evidence of an alert",
        columns={
            EntityKind.HOST: ("DeviceName",),
            EntityKind.USER: _USERS,
            EntityKind.IP: ("RemoteIP", "LocalIP"),
            EntityKind.URL: ("RemoteUrl",),
            EntityKind.DOMAIN: ("RemoteUrl",),
            EntityKind.FILE: ("FolderPath", "FileName"),
            EntityKind.FILE_HASH: ("SHA256", "SHA1"),
        },
        shown=("Title", "Severity", "EntityType", "EvidenceRole", "FileName", "DeviceName"),
    ),
    LogTable(
        name="IdentityLogonEvents",
        what="logon",
        columns=_IDENTITY,
        shown=("ActionType", "Application", "AccountUpn", "IPAddress", "FailureReason"),
        ties=(
            ColumnRelation(
                "AccountUpn",
                RelationType.LOGGED_ON_TO,
                "DestinationDeviceName",
                ("ActionType", "LogonSuccess"),
            ),
        ),
    ),
    LogTable(
        name="IdentityQueryEvents",
        what="directory query",
        columns=_IDENTITY,
        shown=("ActionType", "QueryType", "QueryTarget", "AccountUpn", "DeviceName"),
    ),
    LogTable(
        name="IdentityDirectoryEvents",
        what="directory",
        columns=_IDENTITY,
        shown=("ActionType", "TargetAccountUpn", "TargetDeviceName", "AccountUpn"),
    ),
    LogTable(name="EntraIdSignInEvents", what="sign-in", columns=_SIGN_IN, shown=_SIGNED_IN),
    LogTable(name="AADSignInEventsBeta", what="sign-in", columns=_SIGN_IN, shown=_SIGNED_IN),
    LogTable(
        name="CloudAppEvents",
        what="cloud app",
        columns={EntityKind.IP: ("IPAddress",), EntityKind.USER: ("AccountId",)},
        shown=("ActionType", "Application", "ObjectName", "AccountDisplayName", "IPAddress"),
    ),
    LogTable(
        name="EmailEvents",
        what="mail",
        columns={
            **_MAIL_COLUMNS,
            EntityKind.IP: ("SenderIPv4", "SenderIPv6"),
            EntityKind.DOMAIN: ("SenderFromDomain",),
        },
        shown=(
            "DeliveryAction",
            "ThreatTypes",
            "SenderFromAddress",
            "RecipientEmailAddress",
            "Subject",
        ),
        ties=(ColumnRelation("SenderFromAddress", RelationType.SENT_TO, "RecipientEmailAddress"),),
    ),
    LogTable(
        name="EmailAttachmentInfo",
        what="attachment",
        columns={
            **_MAIL_COLUMNS,
            EntityKind.FILE: ("FileName",),
            EntityKind.FILE_HASH: ("SHA256",),
        },
        shown=("FileName", "ThreatTypes", "SenderFromAddress", "RecipientEmailAddress"),
    ),
    LogTable(
        name="EmailPostDeliveryEvents",
        what="mail after delivery",
        columns={
            EntityKind.EMAIL: ("RecipientEmailAddress",),
            EntityKind.MAILBOX: ("RecipientEmailAddress",),
        },
        shown=("ActionType", "ActionResult", "ThreatTypes", "RecipientEmailAddress"),
    ),
    LogTable(
        name="MessageEvents",
        what="Teams message",
        columns={EntityKind.EMAIL: ("SenderEmailAddress",)},
        mentions={EntityKind.EMAIL: ("RecipientDetails",)},
        shown=("DeliveryAction", "ThreatTypes", "SenderEmailAddress", "Subject"),
    ),
    LogTable(
        name="EmailUrlInfo",
        what="link in an email",
        columns={EntityKind.URL: ("Url",), EntityKind.DOMAIN: ("UrlDomain",)},
        shown=("Url", "UrlLocation", "NetworkMessageId"),
    ),
    LogTable(
        name="UrlClickEvents",
        what="click",
        columns={
            EntityKind.URL: ("Url",),
            EntityKind.USER: ("AccountUpn",),
            EntityKind.IP: ("IPAddress",),
        },
        shown=("ActionType", "Url", "AccountUpn", "Workload"),
        ties=(
            ColumnRelation(
                "AccountUpn", RelationType.CONNECTED_TO, "Url", ("ActionType", "ClickAllowed")
            ),
        ),
    ),
)
