"""What a table of logs is: which of its columns name an entity, and how two of them are related."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tocsin import EntityKind, RelationType

LogColumn = str | tuple[str, str]
"""A column or, of an account whose domain is in a column of its own, both: the domain first."""
EntityColumns = Mapping[EntityKind, tuple[LogColumn, ...]]


@dataclass(frozen=True, slots=True)
class ColumnRelation:
    """That what one column names has to do with what another names."""

    source: LogColumn
    type: RelationType
    target: LogColumn
    only: tuple[str, str] | None = None
    """Only where this column has this value, such as `ActionType` and `LogonSuccess`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogTable:
    """One table."""

    name: str
    what: str
    """What a row of it is, in words: `a sign-in`."""
    columns: EntityColumns
    """Those that name an entity, and nothing else, by its kind."""
    mentions: EntityColumns = field(default_factory=dict)
    """Those that have JSON in which entities are named."""
    shown: tuple[str, ...] = ()
    """Those that say what happened, the most important first."""
    ties: tuple[ColumnRelation, ...] = ()
