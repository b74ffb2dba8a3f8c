"""Tokens of a text, built once so that both databases find the same."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

MAX_TOKEN = 160
"""Longer tokens are cut, with a digest of the whole, so that they stay different."""

_WORD = re.compile(r"[^\W_]+")
_IS_TOKEN = re.compile(r"[0-9a-z.:/@_+%#~&?=!$*,;-]+").fullmatch  # a token is the text itself
REMEMBERED = 1_024  # values recur, and are needed for documents and for lookup names
_RUN = re.compile(r"[^\s<>\"'`|]+")
_PAIRS = re.compile(r"[,;=(){}\[\]]+")
_BEGINNING = re.compile(r"[0-9]+(?:\.[0-9]+){1,2}\.?")
_PORT_OR_PATH = re.compile(r"[:/]")
_ACCOUNT = re.compile(r"([^\\@/:=]+)[\\@]([^\\@/:=]+)")
# What entities contain, unless they are single words
_MAY_NAME = re.compile(r"[:\\/@]|\.[^\s<>\"'`|]|cve-").search
_HAS_NO_PARTS = re.compile(r"[0-9a-z_-]+|[0-9]+(?:\.[0-9]+)+").fullmatch  # such as IPv4 addresses
_ENDS = ".,:;!?()[]{}'\""
_KEPT = ".:/@-_+%#~&?=!$*,;"
_SAFE = str.maketrans(
    {
        character: "/" if character == "\\" else "_"
        for character in map(chr, range(128))
        if not character.isalnum() and character not in _KEPT
    }
)
_DEFANGED = (
    ("hxxp", "http"),
    ("[.]", "."),
    ("(.)", "."),
    ("[dot]", "."),
    ("[:]", ":"),
    ("[://]", "://"),
    ("[@]", "@"),
    ("[at]", "@"),
)


def fold_text(text: str) -> str:
    """Return the text in normal form: in one case, width and composition, and refanged.

    Case and composition are folded as Unicode's NFKC_Casefold does (The Unicode Standard, 3.13).
    """
    if text.isascii():
        folded = text.lower()
    else:
        text = text.encode("utf-8", "replace").decode()
        folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    if "hxxp" in folded or "[" in folded or "(.)" in folded:
        for defanged, plain in _DEFANGED:
            folded = folded.replace(defanged, plain)
    return folded


def split_words(folded: str) -> list[str]:
    """Return the words of a folded text in order: runs of letters and digits."""
    words = _WORD.findall(folded)
    if len(folded) <= MAX_TOKEN or max(map(len, words), default=0) <= MAX_TOKEN:
        return words
    return [word if len(word) <= MAX_TOKEN else _cut(word) for word in words]


def whole_token(folded: str) -> str:
    """Return a folded value as one token."""
    token = folded if _IS_TOKEN(folded) else "_".join(folded.split()).translate(_SAFE)
    return token if len(token) <= MAX_TOKEN else _cut(token)


def field_token(name: str, folded: str) -> str:
    """Return the token of a field's value, which no word prefix matches."""
    return whole_token(f"={name}:{folded}")


def _cut(token: str) -> str:
    digest = hashlib.sha256(token.encode()).hexdigest()[:32]
    return f"{token[: MAX_TOKEN - 33]}~{digest}"


def entity_tokens(folded: str) -> list[str]:
    """Return the entities in a folded text, each as one token, with the entities they contain.

    These are addresses, domains with their parents, URLs with their hosts, email addresses with
    their domains, paths with their last part, and numbers such as CVE-2024-3094 and T1059.001.
    """
    if not _MAY_NAME(folded):
        return []
    found: dict[str, None] = {}
    for run in _RUN.findall(folded):
        # a word with punctuation around it is not an entity, unless it is an IPv6 address
        if not run.isalnum() and (":" in run or not run.strip(_ENDS).isalnum()):
            found.update(dict.fromkeys(_in_run(run)))
    return list(found)


def single_entity_token(folded: str) -> str | None:
    """Return the token of a text that is one entity, None for anything else.

    The beginning of an IPv4 address is not an entity.
    """
    runs = _RUN.findall(folded)
    if len(runs) != 1 or ("://" not in folded and _PAIRS.search(folded)):
        return None
    if _BEGINNING.fullmatch(folded):
        return None
    return next(iter(_in_run(runs[0])), None)


def _in_run(run: str) -> Iterator[str]:
    if "://" in run:
        yield from _of_url(run.strip(_ENDS))
        return
    for piece in _PAIRS.split(run):
        yield from _of_piece(piece.strip(_ENDS) if not piece.startswith("::") else piece)


def _of_url(url: str) -> Iterator[str]:
    yield whole_token(url)
    authority = url.partition("://")[2].partition("/")[0].rpartition("@")[2]
    yield from _of_host(authority)


def _of_piece(piece: str) -> Iterator[str]:
    if "\\" in piece or piece.startswith("/"):
        if piece.strip("/\\"):
            yield whole_token(piece)
            yield from _last_part(piece.replace("\\", "/").rpartition("/")[2])
    elif "@" in piece:
        yield whole_token(piece)
        yield from _of_host(piece.rpartition("@")[2])
    elif piece.count(":") > 1:
        yield whole_token(piece)
    elif "." in piece:
        yield from _of_host(piece)
    elif piece.startswith("cve-"):
        yield whole_token(piece)


def _of_host(text: str) -> Iterator[str]:
    """Yield a name with dots, also without its port or path, and its parent domains."""
    host = _PORT_OR_PATH.split(text, maxsplit=1)[0].strip(".")
    if text != host and "." in text:
        yield whole_token(text)
    if "." not in host:
        return
    yield whole_token(host)
    labels = host.split(".")
    if labels[-1].isalpha():
        yield from (
            whole_token(".".join(labels[start:])) for start in range(1, min(len(labels), 10) - 1)
        )


def _last_part(name: str) -> Iterator[str]:
    if "." in name:
        yield whole_token(name)


@lru_cache(REMEMBERED)
def part_tokens(folded: str) -> tuple[str, ...]:
    """Return the parts of an entity's folded value that name something by themselves."""
    if _HAS_NO_PARTS(folded) or folded.isalnum():
        return ()
    value = whole_token(folded)
    found = [token for token in entity_tokens(folded) if token != value]
    account = _ACCOUNT.fullmatch(folded)
    if account:
        found += map(whole_token, account.groups())
    return tuple(dict.fromkeys(found))
