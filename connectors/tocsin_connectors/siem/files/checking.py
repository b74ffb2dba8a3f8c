"""Whether files can be followed, and what stands in the way."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from pathlib import Path

from tocsin import Health
from tocsin_connectors.siem.files.finding import Findings, find
from tocsin_connectors.siem.files.following import MOST_FILES


def check(pattern: str) -> Health:
    """Return how many files there are, and every reason why not all of them can be followed."""
    findings = find(pattern)
    count = len(findings.files)
    detail = f"{count} {'file' if count == 1 else 'files'} at {pattern}"
    return Health(detail=detail, problems=tuple(_problems(pattern, findings)))


def _problems(pattern: str, findings: Findings) -> Iterator[str]:
    folder = _folder(pattern)
    if not os.path.isdir(folder):  # noqa: PTH112 - Path.is_dir raises where it may not look
        yield f"there is no folder {folder}, or this user may not see it"
        return
    if not os.access(folder, os.R_OK | os.X_OK):
        yield f"the folder {folder} cannot be listed by this user"
        return
    yield from findings.missing
    if len(findings.files) > MOST_FILES:
        yield f"{len(findings.files)} files; at most {MOST_FILES} can be followed"
    for found in findings.files:
        if not os.access(found.state.path, os.R_OK):
            yield f"{found.state.path} is not readable by this user"


def _folder(pattern: str) -> str:
    """Return the folder that has to be there, whatever the pattern matches in it."""
    folder = Path(pattern).parent
    while glob.has_magic(str(folder)) and not folder.exists():
        folder = folder.parent
    return str(folder)
