"""CSV lists: one column of values, or named columns."""

from __future__ import annotations

import csv
from ipaddress import ip_network

from tocsin import EntityKind
from tocsin_plugins.enrichers.list_entries import ListEntry, ListIndex, detect_kind


def read_csv(content: bytes) -> ListIndex:
    """Return the entries of a CSV file; ValueError where it is none, or none of its lines is.

    With a first line that names a column `value`, columns `kind`, `description` and `tags` (with
    spaces between them) count as well; without one, the first column holds the values and the
    second, if any, descriptions. Empty lines and those that begin with # are comments. A line whose
    value is none is passed over and counted.
    """
    lines = [line for line in content.decode("utf-8-sig").splitlines() if _is_content(line)]
    rows = [[cell.strip() for cell in row] for row in csv.reader(lines)]
    names = [name.lower() for name in rows[0]] if rows else []
    columns = names if "value" in names else ["value", "description"]
    wanted = rows[1:] if "value" in names else rows
    entries, skipped = [], 0
    for row in wanted:
        try:
            entries.append(_parse_entry(dict(zip(columns, row, strict=False))))
        except ValueError as error:
            skipped, reason = skipped + 1, error
    if skipped and not entries:
        raise ValueError(f"none of its {skipped} lines can be used; the last: {reason}")
    return ListIndex(entries, skipped)


def _is_content(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _parse_entry(row: dict[str, str]) -> ListEntry:
    value = row["value"]
    kind = EntityKind.parse(row["kind"]) if row.get("kind") else detect_kind(value)
    if kind is EntityKind.IP:
        ip_network(value, strict=False)
    return ListEntry(
        kind=kind,
        value=value,
        description=row.get("description", ""),
        tags=tuple(row.get("tags", "").split()),
    )
