"""Meanings of field names."""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache

from tocsin.model import EntityKind


class FieldMeaning(StrEnum):
    """The meaning of a field, derived from its name."""

    USER = "user"
    HOST = "host"
    REMOTE = "remote"  # a network name: a domain, or an internal host
    PROCESS = "process"
    IMAGE = "image"  # a program by its path; for containers, something else
    FILE = "file"
    DOMAIN = "domain"
    MAILBOX = "mailbox"
    CLOUD_RESOURCE = "cloud_resource"
    OPAQUE = "opaque"  # identifiers that look like hashes, addresses or names


def _assign(meaning: FieldMeaning, names: str) -> dict[str, FieldMeaning]:
    return dict.fromkeys(names.split(), meaning)


_MEANINGS: dict[str, FieldMeaning] = {
    **_assign(
        FieldMeaning.USER,
        "user username usr usrname suser duser susername acct account accountname accountupn upn"
        " userprincipalname samaccountname targetusername subjectusername targetuser sourceuser"
        " srcuser destuser dstuser logonuser loggedonuser ruser logname loginname principal"
        " principalname userid initiatedby actor owner caller userdisplayname accountcustomentity"
        " invaliduser usertargetname usereffectivename userchangesname unameafter unamebefore",
    ),
    **_assign(
        FieldMeaning.HOST,
        "host hostname computer computername machine machinename workstation workstationname"
        " device devicename devname dvchost dvc shost server servername node nodename"
        " endpointname agentname asset assetname hostcustomentity netbiosname fqdn hostfqdn"
        " devicednsname computerdnsname devicehostname sourcehostname srchost srchostname sysname"
        " system"
        " systemname vmname instancename relatedhosts",
    ),
    **_assign(
        FieldMeaning.REMOTE,
        "dhost desthost desthostname destinationhostname destinationhost dsthost remotehost"
        " remotehostname httphostname httphost urlhost sni tlssni requestheaderhost"
        " destinationdnsdomain remoteurl",
    ),
    **_assign(
        FieldMeaning.PROCESS,
        "process processname proc procname newprocessname parentprocessname creatorprocessname"
        " processimage exe executable comm"
        " processexecutable parentexecutable processparentname parentname parentprocess program"
        " sproc dproc sourceprocessname initiatingprocessfilename initiatingprocessparentfilename"
        " processfilename imageloadedby callingprocess callerprocessname",
    ),
    **_assign(FieldMeaning.IMAGE, "image parentimage sourceimage targetimage callerimage"),
    **_assign(
        FieldMeaning.FILE,
        "file filename filepath fname path targetfilename targetfile folderpath fullpath"
        " imageloaded oldfilename attachment attachmentname originalfilename objectname"
        " fileinfofilename servicefilename attachmentfilename relativetargetname",
    ),
    **_assign(
        FieldMeaning.DOMAIN,
        "domain queryname query dnsquery rrname dnsrrname dnsquestion dnsquestionname"
        " questionname domainname urldomain destinationdomain registereddomain qname headerfrom"
        " dnsdomain fqdnname tlsservername domainname registrable hostheader",
    ),
    **_assign(
        FieldMeaning.MAILBOX,
        "mailbox mailboxprimaryaddress mailboxowner mailboxupn mailboxguidowner",
    ),
    **_assign(
        FieldMeaning.CLOUD_RESOURCE,
        "arn resourceid azureresourceid resourcearn cloudresource useridentityarn resourcename"
        " selflink",
    ),
    **_assign(
        FieldMeaning.OPAQUE,
        "ja3 ja3s ja3hash ja3shash ja4 imphash md5imphash pehash ssdeep tlsh traceid spanid"
        " traceparent requestid correlationid sessionid transactionid eventid messageid guid uuid"
        " etag commit nonce token signature serial serialnumber fingerprint apikey key secret"
        " password session trace cookie csrf tenantid recordid version useragent logonprocess"
        " osversion agentversion oid xrequestid csrftoken imagehash authenticationid",
    ),
}

_ENDINGS: tuple[tuple[str, FieldMeaning], ...] = (
    ("processfilename", FieldMeaning.PROCESS),
    ("parentfilename", FieldMeaning.PROCESS),
    ("processname", FieldMeaning.PROCESS),
    ("username", FieldMeaning.USER),
    ("accountname", FieldMeaning.USER),
    ("accountupn", FieldMeaning.USER),
    ("userprincipalname", FieldMeaning.USER),
    ("computername", FieldMeaning.HOST),
    ("workstationname", FieldMeaning.HOST),
    ("devicename", FieldMeaning.HOST),
    ("hostname", FieldMeaning.HOST),
    ("filename", FieldMeaning.FILE),
    ("filepath", FieldMeaning.FILE),
    ("version", FieldMeaning.OPAQUE),
    ("requestid", FieldMeaning.OPAQUE),
    ("traceid", FieldMeaning.OPAQUE),
)
_SEPARATORS = re.compile(r"[^a-z0-9]+")

ENTITY_KINDS: dict[FieldMeaning, EntityKind] = {
    FieldMeaning.USER: EntityKind.USER,
    FieldMeaning.HOST: EntityKind.HOST,
    FieldMeaning.PROCESS: EntityKind.PROCESS,
    FieldMeaning.FILE: EntityKind.FILE,
    FieldMeaning.DOMAIN: EntityKind.DOMAIN,
    FieldMeaning.MAILBOX: EntityKind.MAILBOX,
    FieldMeaning.CLOUD_RESOURCE: EntityKind.CLOUD_RESOURCE,
}


@lru_cache(maxsize=8_192)
def classify_field(name: str) -> FieldMeaning | None:
    """Return the meaning of a field with this name; None if the name is unknown.

    `TargetUserName`, `target_user_name` and `target.user.name` are one name. The last three or two
    parts of a dotted name are tried before the last part alone.
    """
    parts = [part for part in re.split(r"[.:/\[\]]+", name.lower()) if part]
    squeezed = [_SEPARATORS.sub("", part) for part in parts[-3:]]
    if (meaning := _MEANINGS.get("".join(squeezed))) is not None:
        return meaning
    for candidate in ("".join(squeezed[-2:]), squeezed[-1] if squeezed else ""):
        meaning = _MEANINGS.get(candidate) or _by_ending(candidate)
        if meaning is not None:
            return meaning
    return None


def _by_ending(name: str) -> FieldMeaning | None:
    return next((meaning for ending, meaning in _ENDINGS if name.endswith(ending)), None)
