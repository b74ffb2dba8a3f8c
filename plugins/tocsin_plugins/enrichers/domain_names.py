"""Warning signs in domain names, with their points."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import ip_address
from itertools import pairwise
from typing import Self

_LABEL = re.compile(r"[\w-]{1,63}")
_CONSONANTS = re.compile(r"[bcdfghjklmnpqrstvwxz]+")
_LONGEST = 253
# Second-level labels under country codes below which names are registered
_SECOND_LEVEL = frozenset({"ac", "co", "com", "edu", "gob", "gov", "net", "or", "org"})
# fmt: off
# Cheap or free, and often abused for their size
_UNUSUAL = frozenset((
    "bond", "buzz", "cam", "cf", "cfd", "click", "cyou", "fit", "ga", "gdn", "gq", "icu",
    "ml", "monster", "mov", "quest", "rest", "sbs", "surf", "tk", "top", "work", "xyz",
    "zip",
))
# fmt: on
# Confusable letters, in addition to those that Unicode folds
_CONFUSABLE = str.maketrans(
    "01357" + "аеорсухіјѕԁ" + "ɡıɑ" + "ο",  # noqa: RUF001 - digits, Cyrillic, Latin, Greek
    "olest" + "aeopcyxijsd" + "gia" + "o",
)
_PAIRS = (("rn", "m"), ("vv", "w"), ("cl", "d"))


@dataclass(frozen=True, slots=True)
class DomainSign:
    """A warning sign in a name."""

    tag: str
    points: int
    words: str
    """The description, which follows `Its name`."""


@dataclass(frozen=True, slots=True)
class DomainName:
    """A domain name, split into labels."""

    text: str
    labels: tuple[str, ...]
    """The labels, with Punycode decoded."""

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Return the name, None unless it has at least two labels."""
        text = text.strip().lower().strip(".")
        labels = text.split(".")
        is_name = len(labels) > 1 and all(map(_LABEL.fullmatch, labels)) and len(text) <= _LONGEST
        return (
            cls(text, tuple(map(_decode_punycode, labels)))
            if is_name and not _is_ip(text)
            else None
        )

    @property
    def registered(self) -> int:
        """The index of the registered label, such as `example` in `www.example.co.uk`."""
        has_two = len(self.labels) > 2 and len(self.labels[-1]) == 2  # noqa: PLR2004 - as ISO 3166
        return -3 if has_two and self.labels[-2] in _SECOND_LEVEL else -2

    @property
    def label(self) -> str:
        """The registered label."""
        return self.labels[self.registered]

    def is_below(self, other: DomainName) -> bool:
        """Return whether it is the other name, or a subdomain of it."""
        return self.labels[-len(other.labels) :] == other.labels


def _is_ip(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _decode_punycode(label: str) -> str:
    """Return a Punycode label decoded (RFC 3492); unchanged if it is none."""
    if not label.startswith("xn--"):
        return label
    try:
        return label[4:].encode("ascii").decode("punycode").lower()
    except (UnicodeError, ValueError, OverflowError):
        return label


def find_lookalikes(name: DomainName, own: Iterable[DomainName]) -> Iterator[DomainSign]:
    """Yield signs that a name imitates one of these domains; the name is not one of them."""
    for ours in own:
        if resemblance := _describe_resemblance(name, ours):
            yield DomainSign("lookalike", 60, f"{resemblance} {ours.text}")
            return


def _describe_resemblance(name: DomainName, ours: DomainName) -> str | None:
    theirs, label = name.label, ours.label
    if theirs == label:
        return "is, apart from the top-level domain, the same as"
    if _skeleton(theirs) == _skeleton(label):
        return "looks like"
    if len(label) > 4 and _is_one_slip(theirs, label):  # noqa: PLR2004 - short ones are all alike
        return "is one typo away from"
    if len(label) > 3 and label in (*theirs.split("-"), *name.labels[: name.registered]):  # noqa: PLR2004 - as above
        return "contains the name of"
    return None


def _skeleton(label: str) -> str:
    """Return a label as it looks at a glance."""
    plain = unicodedata.normalize("NFKD", label)
    plain = "".join(letter for letter in plain if not unicodedata.combining(letter))
    plain = plain.translate(_CONFUSABLE)
    for pair, letter in _PAIRS:
        plain = plain.replace(pair, letter)
    return plain.replace("-", "").replace("i", "l")


def _is_one_slip(one: str, other: str) -> bool:
    """Return whether a letter was omitted, added, changed, or swapped with the next."""
    if abs(len(one) - len(other)) > 1 or one == other:
        return False
    start = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), None)
    if start is None:
        return True
    rest, other_rest = one[start:], other[start:]
    swapped = rest[:2] == other_rest[:2][::-1] and rest[2:] == other_rest[2:]
    dropped = rest[1:] == other_rest or rest == other_rest[1:]
    return swapped or dropped or rest[1:] == other_rest[1:]


def find_signs(name: DomainName) -> Iterator[DomainSign]:
    """Yield the signs in the name itself."""
    yield from _script_signs(name)
    yield from _randomness_signs(name.label)
    yield from _shape_signs(name)
    if name.labels[-1] in _UNUSUAL:
        yield DomainSign("unusual-tld", 15, f"ends in .{name.labels[-1]}, which is often abused")


def _script_signs(name: DomainName) -> Iterator[DomainSign]:
    if name.text.isascii() and "xn--" not in name.text:
        return
    yield DomainSign("punycode", 15, f"is displayed as {'.'.join(name.labels)}")
    if any(len(_character_scripts(label)) > 1 for label in name.labels):
        yield DomainSign("mixed-scripts", 35, "mixes letters of different scripts")


def _character_scripts(label: str) -> set[str]:
    """Return the scripts of a label's letters, by the first word of each letter's Unicode name."""
    names = (unicodedata.name(letter, "") for letter in label if letter.isalpha())
    return {name.split(" ")[0].split("-")[0] for name in names}


def _randomness_signs(label: str) -> Iterator[DomainSign]:
    """Yield a sign if a label looks generated: long, with even entropy, and unpronounceable."""
    letters = label.replace("-", "")
    if len(letters) < 10 or not letters.isascii():  # noqa: PLR2004 - shorter ones say too little
        return
    entropy = _entropy(letters)
    digits = sum(map(str.isdigit, letters)) / len(letters)
    vowels = sum(letter in "aeiouy" for letter in letters) / len(letters)
    run = max(map(len, _CONSONANTS.findall(letters)), default=0)
    switches = sum(a.isdigit() != b.isdigit() for a, b in pairwise(letters))
    unspeakable = (vowels < 0.2) + (run >= 5) + (switches >= 4)  # noqa: PLR2004 - calibrated
    if entropy >= 3 and unspeakable:  # noqa: PLR2004 - of words this long some 2.8
        yield DomainSign(
            "random-looking",
            (0, 25, 50, 60)[unspeakable],
            f"looks random ({entropy:.1f} bits per letter, {vowels:.0%} vowels, "
            f"{digits:.0%} digits, {run} consonants in a row)",
        )


def _entropy(letters: str) -> float:
    """Return Shannon's entropy in bits per letter."""
    shares = (count / len(letters) for count in Counter(letters).values())
    return -sum(share * math.log2(share) for share in shares)


def _shape_signs(name: DomainName) -> Iterator[DomainSign]:
    digits = sum(map(str.isdigit, name.label))
    if digits >= 4 and digits * 3 >= len(name.label):  # noqa: PLR2004 - a year is nothing
        yield DomainSign("digits", 10, f"has {digits} digits in {name.label}")
    if len(name.label) > 30:  # noqa: PLR2004 - hardly anybody types more
        yield DomainSign("long", 10, f"has a label of {len(name.label)} characters")
    if len(name.labels) > 5:  # noqa: PLR2004 - services of clouds have that many
        yield DomainSign("deep", 10, f"has {len(name.labels)} labels")
    if name.label.count("-") >= 3:  # noqa: PLR2004 - beyond what a name needs
        yield DomainSign("hyphens", 10, f"has {name.label.count('-')} hyphens in {name.label}")
