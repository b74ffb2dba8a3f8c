"""Page `docs/plugin-authors/rules.md`, generated from the docstrings of the conformance suites."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

from tocsin.testing.conformance import (
    ChannelConformance,
    EnricherConformance,
    FileProviderConformance,
    ObjectChannelConformance,
    ProviderConformance,
    PushProviderConformance,
)

PROVIDERS = (ProviderConformance, FileProviderConformance, PushProviderConformance)
SUITES = (*PROVIDERS, EnricherConformance, ChannelConformance, ObjectChannelConformance)
SUITES_PAGE = "[conformance suites](testing.md#conformance-suites)"
HEAD = f"""\
# Rules

This page lists the requirements for providers, enrichers and channels, with the reason for each.
Each rule is a test of the {SUITES_PAGE}.
"""


def page() -> str:
    """Return the page."""
    groups = dict.fromkeys(group for suite in SUITES for group in groups_of(suite))
    return "\n".join([HEAD, *(part for group in groups for part in of_group(group))])


def groups_of(suite: type) -> Iterator[type]:
    """Yield the classes with the rules of a suite."""
    for group in suite.__mro__:
        if any(name.startswith("test_") for name in vars(group)):
            yield group


def of_group(group: type) -> Iterator[str]:
    """Yield the rules of a group."""
    subject = (inspect.getmodule(group).__doc__ or "").partition("\n")[0]
    suites = [f"`{suite.__name__}`" for suite in SUITES if issubclass(suite, group)]
    several = {len(PROVIDERS): "every provider suite", len(SUITES): "every suite"}
    where = several.get(len(suites), " and ".join(suites))
    yield f"## {title(group)}\n"
    they = "These rules are" if subject.startswith("Rules ") else "This rule is"
    yield f"This section lists the {subject[0].lower()}{subject[1:]} {they} part of {where}.\n"
    yield "| Rule | Why |\n|---|---|"
    for name, test in vars(group).items():
        if name.startswith("test_"):
            sentence, _, reason = inspect.getdoc(test).partition("\n\n")
            yield f"| {in_one_line(sentence)} | {in_one_line(reason)} |"
    yield ""


def title(group: type) -> str:
    """Return the subject of a class of rules, such as `Enricher failure`."""
    first, *others = re.findall("[A-Z][a-z]*", group.__name__.removesuffix("Rules"))
    return " ".join([first.replace("Http", "HTTP"), *(word.lower() for word in others)])


def in_one_line(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
