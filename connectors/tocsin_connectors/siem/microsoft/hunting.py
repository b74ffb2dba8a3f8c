"""The tables of advanced hunting; the connector of Defender XDR brings them to Sentinel as well.

https://learn.microsoft.com/defender-xdr/advanced-hunting-schema-tables
"""

from __future__ import annotations

from tocsin import EntityKind, RelationType
from tocsin_connectors.siem.microsoft.tables import Column, Columns, Table, Tie

_ACCOUNT: Column = ("AccountDomain", "AccountName")
_INITIATOR: Column = ("InitiatingProcessAccountDomain", "InitiatingProcessAccountName")
_PROGRAM = "InitiatingProcessFileName"
_USERS: tuple[Column, ...] = ("AccountUpn", _ACCOUNT)
_INITIATORS: tuple[Column, ...] = ("InitiatingProcessAccountUpn", _INITIATOR)
_HASHES: tuple[Column, ...] = ("SHA256", "SHA1", "MD5")
_HOST: Columns = {EntityKind.HOST: ("DeviceName",)}
_FILE: Columns = {EntityKind.FILE: ("FolderPath", "FileName"), EntityKind.FILE_HASH: _HASHES}
_IDENTITY: Columns = {
    EntityKind.USER: _USERS,
    EntityKind.IP: ("IPAddress", "DestinationIPAddress"),
    EntityKind.HOST: ("DeviceName", "DestinationDeviceName"),
}
_SIGN_IN: Columns = {
    EntityKind.USER: ("AccountUpn",),
    EntityKind.IP: ("IPAddress",),
    EntityKind.HOST: ("DeviceName",),
}
_SIGNED_IN = ("Application", "AccountUpn", "IPAddress", "Country", "ErrorCode")
_MAIL: Columns = {
    EntityKind.EMAIL: ("SenderFromAddress", "SenderMailFromAddress", "RecipientEmailAddress"),
    EntityKind.MAILBOX: ("RecipientEmailAddress",),
}

HUNTING = (
    Table(
        name="DeviceNetworkEvents",
        what="network",
        columns={
            **_HOST,
            EntityKind.IP: ("RemoteIP", "LocalIP"),
            EntityKind.URL: ("RemoteUrl",),
            EntityKind.DOMAIN: ("RemoteUrl",),
            EntityKind.USER: _INITIATORS,
            EntityKind.PROCESS: (_PROGRAM,),
            EntityKind.FILE_HASH: ("InitiatingProcessSHA256", "InitiatingProcessSHA1"),
        },
        shown=("ActionType", _PROGRAM, "RemoteIP", "RemotePort", "RemoteUrl", "DeviceName"),
        ties=(
            Tie(
                "DeviceName",
                RelationType.CONNECTED_TO,
                "RemoteIP",
                ("ActionType", "ConnectionSuccess"),
            ),
            Tie(_PROGRAM, RelationType.EXECUTED_ON, "DeviceName"),
        ),
    ),
    Table(
        name="DeviceProcessEvents",
        what="process",
        columns={
            **_HOST,
            **_FILE,
            EntityKind.PROCESS: ("FileName", _PROGRAM),
            EntityKind.USER: (*_USERS, *_INITIATORS),
        },
        shown=("ActionType", "ProcessCommandLine", "FileName", _PROGRAM, "DeviceName"),
        ties=(
            Tie("FileName", RelationType.EXECUTED_ON, "DeviceName"),
            Tie(_PROGRAM, RelationType.STARTED, "FileName"),
        ),
    ),
    Table(
        name="DeviceLogonEvents",
        what="logon",
        columns={
            EntityKind.HOST: ("DeviceName", "RemoteDeviceName"),
            EntityKind.IP: ("RemoteIP",),
            EntityKind.USER: _USERS,
        },
        shown=("ActionType", "LogonType", "AccountName", "RemoteIP", "DeviceName", "FailureReason"),
        ties=(
            Tie(_ACCOUNT, RelationType.LOGGED_ON_TO, "DeviceName", ("ActionType", "LogonSuccess")),
            Tie("RemoteIP", RelationType.CONNECTED_TO, "DeviceName"),
        ),
    ),
    Table(
        name="DeviceFileEvents",
        what="file",
        columns={
            **_HOST,
            **_FILE,
            EntityKind.IP: ("FileOriginIP", "RequestSourceIP"),
            EntityKind.URL: ("FileOriginUrl",),
            EntityKind.USER: _INITIATORS,
            EntityKind.PROCESS: (_PROGRAM,),
        },
        shown=("ActionType", "FolderPath", "FileName", _PROGRAM, "DeviceName"),
        ties=(Tie("SHA256", RelationType.DOWNLOADED_FROM, "FileOriginUrl"),),
    ),
    Table(
        name="DeviceEvents",
        what="device",
        columns={
            **_FILE,
            EntityKind.HOST: ("DeviceName", "RemoteDeviceName"),
            EntityKind.IP: ("RemoteIP", "LocalIP"),
            EntityKind.URL: ("RemoteUrl",),
            EntityKind.DOMAIN: ("RemoteUrl",),
            EntityKind.USER: (*_USERS, *_INITIATORS),
            EntityKind.PROCESS: (_PROGRAM,),
        },
        shown=("ActionType", "FileName", "RemoteIP", "RemoteUrl", _PROGRAM, "DeviceName"),
    ),
    Table(
        name="IdentityLogonEvents",
        what="logon",
        columns=_IDENTITY,
        shown=("ActionType", "Application", "AccountUpn", "IPAddress", "FailureReason"),
        ties=(
            Tie(
                "AccountUpn",
                RelationType.LOGGED_ON_TO,
                "DestinationDeviceName",
                ("ActionType", "LogonSuccess"),
            ),
        ),
    ),
    Table(
        name="IdentityQueryEvents",
        what="directory query",
        columns=_IDENTITY,
        shown=("ActionType", "QueryType", "QueryTarget", "AccountUpn", "DeviceName"),
    ),
    Table(
        name="IdentityDirectoryEvents",
        what="directory",
        columns=_IDENTITY,
        shown=("ActionType", "TargetAccountUpn", "TargetDeviceName", "AccountUpn"),
    ),
    Table(name="EntraIdSignInEvents", what="sign-in", columns=_SIGN_IN, shown=_SIGNED_IN),
    Table(name="AADSignInEventsBeta", what="sign-in", columns=_SIGN_IN, shown=_SIGNED_IN),
    Table(
        name="CloudAppEvents",
        what="cloud app",
        columns={EntityKind.IP: ("IPAddress",), EntityKind.USER: ("AccountId",)},
        shown=("ActionType", "Application", "ObjectName", "AccountDisplayName", "IPAddress"),
    ),
    Table(
        name="EmailEvents",
        what="mail",
        columns={
            **_MAIL,
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
        ties=(Tie("SenderFromAddress", RelationType.SENT_TO, "RecipientEmailAddress"),),
    ),
    Table(
        name="EmailAttachmentInfo",
        what="attachment",
        columns={**_MAIL, EntityKind.FILE: ("FileName",), EntityKind.FILE_HASH: ("SHA256",)},
        shown=("FileName", "ThreatTypes", "SenderFromAddress", "RecipientEmailAddress"),
    ),
    Table(
        name="EmailUrlInfo",
        what="link in a mail",
        columns={EntityKind.URL: ("Url",), EntityKind.DOMAIN: ("UrlDomain",)},
        shown=("Url", "UrlLocation", "NetworkMessageId"),
    ),
    Table(
        name="UrlClickEvents",
        what="click",
        columns={
            EntityKind.URL: ("Url",),
            EntityKind.USER: ("AccountUpn",),
            EntityKind.IP: ("IPAddress",),
        },
        shown=("ActionType", "Url", "AccountUpn", "Workload"),
        ties=(Tie("AccountUpn", RelationType.CONNECTED_TO, "Url", ("ActionType", "ClickAllowed")),),
    ),
)
