"""Examination of the machine: clock, disks, and permissions of files."""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from tocsin.cli.doctor.findings import Area
from tocsin.credentials import KEY_FILE
from tocsin.registry import RetentionSettings
from tocsin.settings import Settings
from tocsin.store import is_sqlite, parse_url, sqlite_file

LOW_SHARE, FULL_SHARE = 0.10, 0.02
"""Shares of free space below which a disk is low on space, and below which it is full."""
LOW_BYTES, FULL_BYTES = 5 * 2**30, 200 * 2**20
_OTHERS = 0o077
_WRITABLE = 0o022
_UNSYNCHRONIZED = 5  # TIME_ERROR of adjtimex(2)
_TIMEX_BYTES = 512  # more than struct timex has on any platform


def examine_clock(area: Area) -> None:
    """Find out whether the kernel's clock is synchronized; Linux only."""
    if sys.platform != "linux":
        return
    state = ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES))
    if state == _UNSYNCHRONIZED:
        area.warn(
            "this machine's clock is not synchronized",
            "run an NTP client, such as chrony or systemd-timesyncd, on this machine or its host",
        )
    else:
        area.note("this machine's clock is synchronized")


def examine_disks(area: Area, settings: Settings, retention: RetentionSettings) -> None:
    """Find nearly full disks among those to which Tocsin writes."""
    url = parse_url(settings.database)
    folders = {"TOCSIN_DATA_DIR": settings.data_dir}
    if is_sqlite(url):
        folders["TOCSIN_DATABASE_URL"] = sqlite_file(url).parent
    if (archive := retention.archive or settings.archive_dir) is not None:
        name = "archive in [retention]" if retention.archive else "TOCSIN_ARCHIVE_DIR"
        found = _find_existing(archive)
        folders[name if found == archive else f"{name}: {archive}"] = found
    for name, folder in folders.items():
        if folder.exists():
            _examine_disk(area, f"{folder} ({name})", folder)
        else:
            area.warn(f"{folder} ({name}) does not exist", "start `tocsin serve` once to create it")


def _find_existing(folder: Path) -> Path:
    """Return the folder or its nearest existing parent; retention creates the folder later."""
    for path in (folder, *folder.parents):
        with suppress(OSError):  # no access
            if path.exists():
                return path
    return folder


def _examine_disk(area: Area, shown: str, folder: Path) -> None:
    disk, files = shutil.disk_usage(folder), os.statvfs(folder)
    share = disk.free / disk.total
    found = f"{shown}: {disk.free / 2**30:.1f} GiB free ({share:.0%} of the disk)"
    remedy = (
        "free up disk space, or set [retention] in plugins.toml; "
        "see docs/operators/growth.md#retention"
    )
    if share < FULL_SHARE or disk.free < FULL_BYTES:
        area.fail(found, remedy)
    elif share < LOW_SHARE and disk.free < LOW_BYTES:
        area.warn(found, remedy)
    else:
        area.note(found)
    if files.f_files and files.f_favail < files.f_files * FULL_SHARE:
        area.fail(
            f"{shown}: only {files.f_favail} more files can be created",
            "remove files from this disk",
        )


def examine_files(area: Area, settings: Settings, secrets: Iterable[Path]) -> None:
    """Find files with secrets that others can read, and files that others can change."""
    url = parse_url(settings.database)
    private: dict[Path, str] = dict.fromkeys(secrets, "a secret")
    private |= dict.fromkeys(settings.secret_files.values(), "a secret")
    if is_sqlite(url):
        private |= {
            sqlite_file(url): "the database",
            sqlite_file(url).parent / KEY_FILE: "the encryption key",
        }
    is_safe = _examine_modes(area, private)
    for path in filter(None, (settings.plugins_file, settings.templates_dir)):
        if path.exists() and path.stat().st_mode & _WRITABLE:
            is_safe = False
            area.warn(
                f"{path} is writable by users other than its owner", f"run `chmod go-w {path}`"
            )
    if is_safe:
        area.note(f"files with secrets that only their owner can read: {len(private)}")


def _examine_modes(area: Area, private: Mapping[Path, str]) -> bool:
    is_safe = True
    for path, what in sorted(private.items()):
        try:
            status = path.stat()
        except FileNotFoundError:
            continue  # the configuration says so, or it is yet to be created
        except OSError as error:
            is_safe = False
            area.fail(f"{path}: {error.strerror}", "grant the service user access to this file")
            continue
        if status.st_mode & _OTHERS:
            is_safe = False
            mode = f"{status.st_mode & 0o777:o}"
            area.warn(f"{path} contains {what} and has mode {mode}", f"run `chmod go= {path}`")
    return is_safe
