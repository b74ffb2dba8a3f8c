"""CSV lists: one column of values, or named columns."""

from __future__ import annotations

import csv
from ipaddress import ip_network

from tocsin import EntityKind
from tocsin_plugins.enrichers.list_entries import ListEntry, ListIndex, detect_kind


def read_csv(content: bytes) -> ListIndex:
    """Return the entries of a CSV file; ValueError if it has no usable line.

    If the first line names a column `value`, the columns `kind`, `description` and `tags`
    (separated by spaces) are read as well. Otherwise, the first column holds values and the second,
    if any, descriptions. Empty lines and lines that start with # are comments. Lines without a
    valid value are skipped and counted.
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
        raise ValueError(f"no usable line ({skipped} skipped); last error: {reason}")
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
