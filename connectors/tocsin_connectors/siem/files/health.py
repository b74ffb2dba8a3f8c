"""Health check of the configured files."""

from __future__ import annotations

import contextlib
import glob
import os
from collections.abc import Iterator
from pathlib import Path

from tocsin import Health
from tocsin_connectors.siem.files.discovery import FileListing, find_files
from tocsin_connectors.siem.files.open_file import OpenFile
from tocsin_connectors.siem.files.reader import MAX_FILES


def check_files(pattern: str) -> Health:
    """Return the number of files, and every reason why a file cannot be read."""
    findings = find_files(pattern)
    count = len(findings.files)
    detail = f"{count} {'file' if count == 1 else 'files'} at {pattern}"
    return Health(detail=detail, problems=tuple(_find_problems(pattern, findings)))


def find_files_beginning(pattern: str, prefix: bytes) -> tuple[str, ...]:
    """Return the paths of the files whose content begins with a prefix of at most a KiB."""
    paths = [found.state.path for found in find_files(pattern).files[:MAX_FILES]]
    return tuple(path for path in paths if _begins_with(path, prefix))


def _begins_with(path: str, prefix: bytes) -> bool:
    with contextlib.suppress(OSError), OpenFile(path) as file:
        return file.head.startswith(prefix)
    return False


def _find_problems(pattern: str, findings: FileListing) -> Iterator[str]:
    folder = _get_folder(pattern)
    if not os.path.isdir(folder):  # noqa: PTH112 - Path.is_dir raises where it may not look
        yield f"the folder {folder} does not exist, or Tocsin's user cannot see it"
        return
    if not os.access(folder, os.R_OK | os.X_OK):
        yield f"Tocsin's user cannot list the folder {folder}"
        return
    yield from findings.missing
    if len(findings.files) > MAX_FILES:
        yield f"{len(findings.files)} files match; Tocsin reads at most {MAX_FILES}"
    for found in findings.files:
        if not os.access(found.state.path, os.R_OK):
            yield f"Tocsin's user cannot read {found.state.path}"


def _get_folder(pattern: str) -> str:
    """Return the folder that must exist, whatever the pattern matches in it."""
    folder = Path(pattern).parent
    while glob.has_magic(str(folder)) and not folder.exists():
        folder = folder.parent
    return str(folder)
