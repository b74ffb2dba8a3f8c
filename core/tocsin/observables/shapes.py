"""Kinds of values by their shape alone."""

from __future__ import annotations

import re
from ipaddress import IPv6Address, ip_address, ip_interface

from tocsin.model import Entity, EntityKind
from tocsin.observables.suffixes import ascii_name, is_local, public_suffix
from tocsin.observables.vocabulary import (
    CODE_SUFFIXES,
    CODE_WORDS,
    FILE_SUFFIXES,
    NOT_DOMAINS,
    REGISTRY_HIVES,
    SCRIPT_SUFFIXES,
)

_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_IPV4 = re.compile(rf"{_OCTET}\.{_OCTET}\.{_OCTET}\.{_OCTET}")
_IPV6 = re.compile(r"[0-9a-f:]{2,39}(?:\d{1,3}(?:\.\d{1,3}){3})?", re.ASCII | re.IGNORECASE)
_IPV6_START = re.compile(
    r"::1$|::ffff:|64:ff9b:|[23][0-9a-f]{3}:|f[cdf][0-9a-f]{2}:|fe[89ab][0-9a-f]:", re.IGNORECASE
)
"""Prefixes of addresses in use (IANA's registry of the IPv6 address space)."""

_NETWORK = re.compile(r"[0-9a-f:.]{3,45}/\d{1,3}", re.ASCII | re.IGNORECASE)
_LABEL = r"[^\W_](?:[\w-]{0,61}[^\W_])?"
_NAME = re.compile(
    rf"(?:{_LABEL}\.){{1,20}}(?:xn--[a-z0-9-]{{2,59}}|[^\W\d_]{{2,63}})\.?", re.IGNORECASE
)
_SERVICE_LABELS = re.compile(r"(?:_[a-z0-9-]{1,60}\.)+", re.IGNORECASE)  # RFC 8552
_HASH = re.compile(r"[0-9a-f]{32}(?:[0-9a-f]{8}|[0-9a-f]{32}|[0-9a-f]{96})?", re.IGNORECASE)
_CVE = re.compile(r"CVE[-_](?:1999|20\d\d)[-_]\d{4,19}", re.IGNORECASE | re.ASCII)
_TECHNIQUE = re.compile(
    r"T(?:1(?!000)\d{3}|0[78]\d\d)(?:\.\d{3})?", re.ASCII
)  # enterprise, mobile; ICS
_PROGRAM = re.compile(r"[\w+-][\w.+-]{0,100}\.(?:exe|scr|com)", re.IGNORECASE)
_EMAIL = re.compile(r"([\w.!#$%&'*+/=?^`{|}~-]{1,64})@([^\W_][\w.-]{1,253})")
_ACCOUNT = re.compile(
    r"([a-z0-9][\w.-]{0,62}|NT AUTHORITY|NT SERVICE|Window Manager|Font Driver Host)\\{1,2}"
    r"([\w.$ -]{1,64}?)",
    re.IGNORECASE,
)
_WINDOWS_PATH = re.compile(r"[a-z]:\\|\\\\[\w.$-]+\\|\\(?:device|\?\?)\\|%\w+%\\", re.IGNORECASE)
_UNIX_PATH = re.compile(
    r"(?:~|/(?:bin|boot|dev|etc|home|lib|lib64|media|mnt|opt|private|proc|root|run|sbin|srv|sys|tmp"
    r"|usr|var|Applications|Library|System|Users|Volumes))/[^/\s]"
)
_FILE_NAME = re.compile(r"[^\\/:*?\"<>|\s][^\\/:*?\"<>|]{0,250}\.[A-Za-z0-9_]{1,10}")
_ARN = re.compile(r"arn:[\w-]*:[\w-]*:[\w-]*:\d*:.")
_AZURE = re.compile(r"/subscriptions/[0-9a-f-]{36}(?:/|$)", re.IGNORECASE)


def parse_ip(text: str) -> str | None:
    """Return `text` as an address in the form of `ipaddress`; None if it is not one.

    An IPv4-mapped IPv6 address becomes the IPv4 address, and a zone is dropped. An address with a
    prefix length counts as the address, a network does not.
    """
    address, slash, length = text.partition("/")
    if not _IPV4.fullmatch(address) and not _is_ipv6(address.partition("%")[0]):
        return None
    if not slash and ":" not in address:
        return address
    if slash and (not length.isdecimal() or is_network(text)):
        return None
    try:
        return _canonical(address)
    except ValueError:
        return None


def is_network(text: str) -> bool:
    """Return whether `text` is a network of several addresses, such as 192.0.2.0/24.

    A host address with a prefix length is not one, nor is an address with a port after `/`.
    """
    if not _NETWORK.fullmatch(text):
        return False
    try:
        interface = ip_interface(text)
    except ValueError:
        return False
    return interface.network.num_addresses > 1 and interface.ip == interface.network[0]


def _is_ipv6(text: str) -> bool:
    return bool(_IPV6.fullmatch(text) and _IPV6_START.match(text))


def _canonical(text: str) -> str:
    address = ip_address(text.partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(mapped or address)


def is_hash(text: str) -> bool:
    """Return whether `text` has the form of an MD5, SHA-1, SHA-256 or SHA-512 hash."""
    return bool(_HASH.fullmatch(text)) and not text.isdecimal()


def is_cve(text: str) -> bool:
    """Return whether `text` is a CVE ID, such as CVE-2021-44228."""
    return bool(_CVE.fullmatch(text))


def is_technique(text: str) -> bool:
    """Return whether `text` is the ID of an ATT&CK technique, such as T1059.001."""
    return bool(_TECHNIQUE.fullmatch(text))


def is_program(text: str) -> bool:
    """Return whether `text` is the name of a Windows program without its folder."""
    return bool(_PROGRAM.fullmatch(text)) and text[-3:].lower() != "com"


def parse_name(text: str, *, certain: bool = False) -> Entity | None:
    """Return the domain or internal host that `text` names; None if it names neither.

    A name that could also be a file or code counts only if it is `certain` to be a network name: in
    a URL, after a key, or defanged.
    """
    service = _SERVICE_LABELS.match(text)
    text = text[service.end() :] if service else text
    if not _NAME.fullmatch(text):
        return None
    name = ascii_name(text)
    if name is None:
        return None
    if is_local(name):
        return Entity(EntityKind.HOST, name)
    suffix = public_suffix(name)
    if suffix is None or not (certain or _is_plainly_a_domain(text.rstrip("."), name, suffix)):
        return None
    return Entity(EntityKind.DOMAIN, name)


def _is_plainly_a_domain(text: str, name: str, suffix: str) -> bool:
    if name.startswith("www."):
        return True
    if not (text.islower() or text.isupper() or text.rpartition(".")[2].islower()):
        return False  # the end of a sentence and the start of the next: `then.In`
    if name in NOT_DOMAINS or suffix in FILE_SUFFIXES:
        return False
    return "." in suffix or not _may_be_code(name, suffix)


def _may_be_code(name: str, suffix: str) -> bool:
    """Return whether a name is more likely a script, a field, a function or a module."""
    first, *others = name.split(".")
    if suffix in SCRIPT_SUFFIXES:
        return len(others) == 1
    if suffix in CODE_SUFFIXES:
        return first in CODE_WORDS or (len(first) == 1 and len(others) == 1)
    return first in _MODULES


_MODULES = frozenset({"android", "com", "io", "java", "javax", "net", "org", "sun", "system"})


def parse_email(text: str) -> str | None:
    """Return `text` as an email address in lower case; None if it is not one."""
    found = _EMAIL.fullmatch(text.rstrip("."))
    if found is None:
        return None
    local, domain = found.groups()
    named = parse_name(domain, certain=True)
    if named is None or local.startswith(".") or local.endswith("."):
        return None
    return f"{local.lower()}@{named.value}"


def parse_account(text: str) -> str | None:
    r"""Return `text` as a Windows account, DOMAIN\name; None if it is not one."""
    found = _ACCOUNT.fullmatch(text)
    if found is None:
        return None
    domain, name = found.groups()
    if domain.lower() in REGISTRY_HIVES or domain.upper().startswith("HKEY_"):
        return None
    return f"{domain}\\{name}"


def is_plain_account(account: str) -> bool:
    r"""Return whether DOMAIN\name is an account even without context.

    A folder with a file, or an escape such as `\n` inside a text, looks alike.
    """
    domain, _, name = account.partition("\\")
    if _FILE_NAME.fullmatch(name) and is_file_suffix(name):
        return False
    return domain.isupper() or " " in domain or (len(domain) > 1 and name[0] not in "nrt")


def is_file_suffix(name: str) -> bool:
    """Return whether `name` has the suffix of a file."""
    return name.rpartition(".")[2].lower() in _ENDINGS


_ENDINGS = frozenset(
    [
        *("bat", "bin", "cfg", "cmd", "conf", "cpl", "csv", "dat", "dll", "doc", "docm"),
        *("docx", "dotm", "exe", "gz", "hta", "htm", "html", "ini", "iso", "js", "json"),
        *("lnk", "log", "msi", "pdf", "php", "png", "ps1", "py", "rar", "reg", "scr", "sh"),
        *("sys", "tmp", "txt", "vbs", "xls", "xlsm", "xlsx", "xml", "zip"),
    ]
)


def is_windows_path(text: str) -> bool:
    """Return whether `text` is a Windows path, from a drive, a share, a device or a variable."""
    start = _WINDOWS_PATH.match(text)
    return start is not None and len(text) > start.end()


def is_unix_path(text: str) -> bool:
    """Return whether `text` is a Unix path below a standard root folder or a home folder."""
    return bool(_UNIX_PATH.match(text))


def is_path(text: str) -> bool:
    """Return whether `text` is an absolute path."""
    return is_windows_path(text) or is_unix_path(text)


def is_file_name(text: str) -> bool:
    """Return whether `text` can be a file name without a folder."""
    return bool(_FILE_NAME.fullmatch(text))


def is_cloud_resource(text: str) -> bool:
    """Return whether `text` is a cloud resource of AWS (ARN) or Azure (resource ID)."""
    return bool(_ARN.match(text) or _AZURE.match(text))


def unescape_path(path: str) -> str:
    """Return a Windows path with single backslashes, also if it was escaped as in JSON."""
    if "\\\\" not in path[1:]:
        return path
    return re.sub(r"(?<!\\)\\$", "", path).replace("\\\\", "\\")


def base_name(path: str) -> str:
    """Return the last part of a Windows or Unix path."""
    return path.replace("\\", "/").rpartition("/")[2]
