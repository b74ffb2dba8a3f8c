"""Entities of stored incidents for the networks, ranges and wildcards of a query."""

from __future__ import annotations

from dataclasses import replace

from tocsin import FindEntities, Statement, Window
from tocsin_plugins.investigator.collection.query_client import BoundedQueryClient
from tocsin_plugins.investigator.interpretation import InvestigationScope
from tocsin_plugins.investigator.phrases import (
    count_noun,
    format_time,
    join_names,
    name_pattern,
    state,
)


async def resolve_patterns(
    client: BoundedQueryClient, scope: InvestigationScope, window: Window
) -> tuple[InvestigationScope, list[Statement]]:
    """Return the scope with the entities that its patterns match, and the gaps of that.

    Only entities of stored incidents are known: no SIEM can list the members of a network.
    """
    if not scope.patterns:
        return scope, []
    limit = client.bounds.entities
    questions = [
        FindEntities(pattern=pattern.text, kinds=pattern.kinds, window=window, limit=limit)
        for pattern in scope.patterns
    ]
    found, gaps, steps = set(scope.entities), [], []
    for pattern, answer in zip(scope.patterns, await client.ask_all(questions), strict=False):
        if answer.content is None:
            continue
        steps.append(answer.step)
        members = [entity for entity in answer.content.entities if not scope.ignores(entity)]
        found |= set(members)
        since = f"from {format_time(window.start)} to {format_time(window.end)}"
        if not members:
            text = f"no stored incident {since} involves {name_pattern(pattern)}"
            gaps.append(state(text, answer.step))
        elif not answer.content.complete:
            number = count_noun(len(members), "entity", "entities")
            text = f"{name_pattern(pattern)} match more than the {number} that were examined"
            gaps.append(state(text, answer.step))
    if steps:
        names = join_names([name_pattern(pattern) for pattern in scope.patterns])
        text = (
            f"for {names}, Tocsin searched only for events that involve matching entities from "
            "stored incidents"
        )
        gaps.append(state(text, *steps))
    entities = sorted(found, key=lambda entity: (entity.kind.value, entity.value))
    return replace(scope, entities=tuple(entities)), gaps
