"""Metrics of a node's machine: space on disks, and expiry times of certificates in files."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from cryptography import x509

from tocsin.metrics import Metrics


class MachineGauges:
    """Gauges that are read from the file system at each scrape."""

    def __init__(
        self,
        metrics: Metrics,
        folders: Mapping[str, Path],
        list_certificates: Callable[[], Iterable[Path]],
    ) -> None:
        """Take the folders that the node writes to, by the values of the label `folder`."""
        self._folders = folders
        self._list_certificates = list_certificates
        self._free = metrics.gauge(
            "tocsin_disk_free_bytes", "Free space on the disk that contains a folder", "folder"
        )
        self._size = metrics.gauge(
            "tocsin_disk_size_bytes", "Size of the disk that contains a folder", "folder"
        )
        self._ends = metrics.gauge(
            "tocsin_certificate_end_timestamp_seconds",
            "Time at which the first certificate in a configured PEM file expires",
            "path",
        )
        metrics.read_by(self._read)

    async def _read(self) -> None:
        await asyncio.to_thread(self._read_files)

    def _read_files(self) -> None:
        for name, folder in self._folders.items():
            with suppress(OSError):
                disk = shutil.disk_usage(folder)
                self._free.labels(name).set(disk.free)
                self._size.labels(name).set(disk.total)
        self._ends.clear()
        for path in self._list_certificates():
            with suppress(OSError, ValueError):
                found = x509.load_pem_x509_certificates(path.read_bytes())
                end = min(certificate.not_valid_after_utc for certificate in found)
                self._ends.labels(str(path)).set(end.timestamp())
