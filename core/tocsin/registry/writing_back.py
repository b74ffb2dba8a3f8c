"""What a provider is told to write to its SIEM, and whether its plugin can."""

from __future__ import annotations

from collections.abc import Iterator

from tocsin.hookspecs import Capability, Provider

_CAPABILITIES = {
    "write_back": (Capability.COMMENT, "cannot write comments"),
    "write_back_status": (Capability.STATUS, "cannot set a status"),
}


def find_unsupported_write_back(
    kind: type[Provider], settings: Provider.Settings
) -> Iterator[tuple[str, str, str]]:
    """Yield each setting that cannot be as it is, what was found, and what would be right."""
    able = kind.capabilities()
    lacking = {
        name: words
        for name, (needed, words) in _CAPABILITIES.items()
        if getattr(settings, name) and needed not in able
    }
    for name, words in lacking.items():
        yield name, f"{settings.plugin!r} {words}", "leave it out"
    status, needs_comment = settings.write_back_status, Capability.COMMENT in able
    if status and needs_comment and not settings.write_back and not lacking:
        found = f"found {status.value!r}, but nothing is written back"
        yield "write_back_status", found, "set `write_back = true` as well, or leave it out"
