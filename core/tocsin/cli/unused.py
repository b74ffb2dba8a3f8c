"""Files in the operator's folder of templates that look like ones that count, and do not."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from tocsin.contracts import CONTRACT, SCHEMA
from tocsin.model import EventType
from tocsin.validation import suggest_nearest

_TEMPLATE = re.compile(rf"(?:{'|'.join(EventType)})(?:\.[\w-]+)?\.(?:json|txt|html)\.j2")

_ALIKE = 0.75  # of two names, one of which is probably the other, misspelt


def find_unused(mine: Path, shipped: Sequence[Path], named: set[str]) -> Iterator[str]:
    """Yield each folder and file there whose name is nearly one that counts, with that name.

    `shipped` are the folders of plugins, `named` the receivers that destinations name. A name that
    is like no other may be of a receiver or a template of the operator's own.
    """
    receivers = sorted({it.name for path in shipped for it in path.glob("[!_.]*") if it.is_dir()})
    for folder in sorted(it for it in mine.glob("[!_.]*") if it.is_dir()):
        near = suggest_nearest(folder.name, receivers, _ALIKE)
        if folder.name not in (*receivers, *named) and near:
            yield f"{folder}: nothing uses it{near}"
        else:
            yield from _unused_files(folder, shipped)


def _unused_files(folder: Path, shipped: Sequence[Path]) -> Iterator[str]:
    theirs = {it.name for path in shipped for it in (path / folder.name).glob("*")}
    known = sorted({*theirs, CONTRACT, SCHEMA, *(f"{event}.json.j2" for event in EventType)})
    for path in sorted(it for it in folder.glob("[!_.]*") if it.is_file()):
        near = suggest_nearest(path.name, known, _ALIKE)
        if path.name not in known and not _TEMPLATE.fullmatch(path.name) and near:
            yield f"{path}: nothing uses it{near}"
