"""What the name of a field says of its value."""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache

from tocsin.model import EntityKind


class Meaning(StrEnum):
    """What a field holds, where its name tells."""

    USER = "user"
    HOST = "host"
    REMOTE = "remote"  # a name of the network: a domain, or a host of one's own
    PROCESS = "process"
    IMAGE = "image"  # a program by its path; of containers, something else
    FILE = "file"
    DOMAIN = "domain"
    MAILBOX = "mailbox"
    CLOUD_RESOURCE = "cloud_resource"
    OPAQUE = "opaque"  # identifiers that look like hashes, addresses or names


def _all(meaning: Meaning, names: str) -> dict[str, Meaning]:
    return dict.fromkeys(names.split(), meaning)


_MEANINGS: dict[str, Meaning] = {
    **_all(
        Meaning.USER,
        "user username usr usrname suser duser susername acct account accountname accountupn upn"
        " userprincipalname samaccountname targetusername subjectusername targetuser sourceuser"
        " srcuser destuser dstuser logonuser loggedonuser ruser logname loginname principal"
        " principalname userid initiatedby actor owner caller userdisplayname accountcustomentity"
        " invaliduser usertargetname usereffectivename userchangesname unameafter unamebefore",
    ),
    **_all(
        Meaning.HOST,
        "host hostname computer computername machine machinename workstation workstationname"
        " device devicename devname dvchost dvc shost server servername node nodename"
        " endpointname agentname asset assetname hostcustomentity netbiosname fqdn hostfqdn"
        " devicednsname computerdnsname devicehostname sourcehostname srchost srchostname sysname"
        " system"
        " systemname vmname instancename relatedhosts",
    ),
    **_all(
        Meaning.REMOTE,
        "dhost desthost desthostname destinationhostname destinationhost dsthost remotehost"
        " remotehostname httphostname httphost urlhost sni tlssni requestheaderhost"
        " destinationdnsdomain remoteurl",
    ),
    **_all(
        Meaning.PROCESS,
        "process processname proc procname newprocessname parentprocessname creatorprocessname"
        " processimage exe executable comm"
        " processexecutable parentexecutable processparentname parentname parentprocess program"
        " sproc dproc sourceprocessname initiatingprocessfilename initiatingprocessparentfilename"
        " processfilename imageloadedby callingprocess callerprocessname",
    ),
    **_all(Meaning.IMAGE, "image parentimage sourceimage targetimage callerimage"),
    **_all(
        Meaning.FILE,
        "file filename filepath fname path targetfilename targetfile folderpath fullpath"
        " imageloaded oldfilename attachment attachmentname originalfilename objectname"
        " fileinfofilename servicefilename attachmentfilename relativetargetname",
    ),
    **_all(
        Meaning.DOMAIN,
        "domain queryname query dnsquery rrname dnsrrname dnsquestion dnsquestionname"
        " questionname domainname urldomain destinationdomain registereddomain qname headerfrom"
        " dnsdomain fqdnname tlsservername domainname registrable hostheader",
    ),
    **_all(
        Meaning.MAILBOX, "mailbox mailboxprimaryaddress mailboxowner mailboxupn mailboxguidowner"
    ),
    **_all(
        Meaning.CLOUD_RESOURCE,
        "arn resourceid azureresourceid resourcearn cloudresource useridentityarn resourcename"
        " selflink",
    ),
    **_all(
        Meaning.OPAQUE,
        "ja3 ja3s ja3hash ja3shash ja4 imphash md5imphash pehash ssdeep tlsh traceid spanid"
        " traceparent requestid correlationid sessionid transactionid eventid messageid guid uuid"
        " etag commit nonce token signature serial serialnumber fingerprint apikey key secret"
        " password session trace cookie csrf tenantid recordid version useragent logonprocess"
        " osversion agentversion oid xrequestid csrftoken imagehash authenticationid",
    ),
}

_ENDINGS: tuple[tuple[str, Meaning], ...] = (
    ("processfilename", Meaning.PROCESS),
    ("parentfilename", Meaning.PROCESS),
    ("processname", Meaning.PROCESS),
    ("username", Meaning.USER),
    ("accountname", Meaning.USER),
    ("accountupn", Meaning.USER),
    ("userprincipalname", Meaning.USER),
    ("computername", Meaning.HOST),
    ("workstationname", Meaning.HOST),
    ("devicename", Meaning.HOST),
    ("hostname", Meaning.HOST),
    ("filename", Meaning.FILE),
    ("filepath", Meaning.FILE),
    ("version", Meaning.OPAQUE),
    ("requestid", Meaning.OPAQUE),
    ("traceid", Meaning.OPAQUE),
)
_SEPARATORS = re.compile(r"[^a-z0-9]+")

KIND_OF: dict[Meaning, EntityKind] = {
    Meaning.USER: EntityKind.USER,
    Meaning.HOST: EntityKind.HOST,
    Meaning.PROCESS: EntityKind.PROCESS,
    Meaning.FILE: EntityKind.FILE,
    Meaning.DOMAIN: EntityKind.DOMAIN,
    Meaning.MAILBOX: EntityKind.MAILBOX,
    Meaning.CLOUD_RESOURCE: EntityKind.CLOUD_RESOURCE,
}


@lru_cache(maxsize=8_192)
def meaning_of(name: str) -> Meaning | None:
    """Return what a field of this name holds; None where the name does not tell.

    `TargetUserName`, `target_user_name` and `target.user.name` are one name. The last parts of
    a name with dots are looked at together before the last alone, three where they are known.
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


def _by_ending(name: str) -> Meaning | None:
    return next((meaning for ending, meaning in _ENDINGS if name.endswith(ending)), None)
