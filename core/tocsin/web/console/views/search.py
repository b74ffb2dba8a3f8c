"""Search."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from html import unescape
from typing import Any

from tocsin import knowledge
from tocsin.errors import RequestError
from tocsin.model import Entity, EntityKind, IncidentRecord
from tocsin.web.console.page_request import PageRequest, select_query
from tocsin.web.console.pages import ConsoleAction, ConsolePage
from tocsin.web.problems import describe_error
from tocsin.web.routes import search as api

_MARK = re.compile("</?mark>")
_INCIDENT = "incident"
_DOCUMENTS = (_INCIDENT, "session")
_ENTITIES = "entity"
_A_FEW = "10"


async def show_search(request: PageRequest) -> Mapping[str, Any]:
    """Return matching incidents, investigations and entities, or the error in the query."""
    text, kind = request.query.get("q", "").strip(), request.query.get("kind", "")
    shown: dict[str, Any] = {
        "q": text,
        "kind": kind,
        "documents": None,
        "entities": None,
        "entity_kinds": list(EntityKind),
        "facets": (),
    }
    if not text:
        return shown
    try:
        if kind in ("", *_DOCUMENTS):
            shown["documents"] = await _documents(request, text, kind)
    except RequestError as error:
        shown["fault"] = describe_error(request.http, error)
    try:
        if kind not in _DOCUMENTS and not (kind == "" and "cursor" in request.query):
            shown["entities"] = await _entities(request, text, kind)
    except RequestError as error:
        shown.setdefault("fault", describe_error(request.http, error))
    if "fault" not in shown:
        shown["facets"] = await _count_kinds(request, text, shown)
    return shown


async def _documents(request: PageRequest, text: str, kind: str) -> Mapping[str, Any]:
    question = f"{text} kind:{kind}" if kind else text
    found = await request.ask(
        api.search, None, q=question, limit="25", **select_query(request, "cursor")
    )
    incidents = await _load_incidents(request, found["results"])
    every = {entity for incident in incidents.values() for entity in incident.entities}
    sought = set(knowledge.find_sought_entities(text, every))
    results = []
    for result in found["results"]:
        incident = incidents.get((result["kind"], result["id"]))
        results.append(
            {
                **result,
                "parts": highlights(result["snippet"]),
                "incident": incident,
                "entities": _sort_entities(incident.entities, sought) if incident else [],
            }
        )
    return {**found, "results": results}


def _sort_entities(
    entities: Iterable[Entity], sought: Collection[Entity]
) -> list[tuple[Entity, bool]]:
    """Return the entities, sought ones first, each with a flag for these."""
    flagged = [(entity, entity in sought) for entity in entities]
    return sorted(flagged, key=lambda each: not each[1])


async def _load_incidents(
    request: PageRequest, results: Sequence[Mapping[str, Any]]
) -> Mapping[tuple[str, str], IncidentRecord]:
    """Return the incidents among the results by kind and ID, without removed ones."""
    numbers = [int(result["id"]) for result in results if result["kind"] == _INCIDENT]
    if not numbers:
        return {}
    services = request.services
    found = await services.database.read(knowledge.load_incidents, numbers, services.markings)
    return {(_INCIDENT, str(incident.number)): incident for incident in found}


async def _count_kinds(
    request: PageRequest, text: str, shown: Mapping[str, Any]
) -> Sequence[tuple[str, Mapping[str, Any]]]:
    """Return the number of matches of each kind, without kinds that the query excludes.

    Kinds that are shown by themselves are counted already.
    """
    counts = []
    for kind in _DOCUMENTS:
        if kind == shown["kind"]:
            counts.append((kind, shown["documents"]))
            continue
        with suppress(RequestError):  # the query has another kind itself
            counted = await request.ask(api.search, None, q=f"{text} kind:{kind}", limit="1")
            counts.append((kind, counted))
    if shown["kind"] in ("", _ENTITIES) and shown["entities"] is not None:
        return [*counts, (_ENTITIES, shown["entities"])]
    with suppress(RequestError):  # longer than an entity's name
        counts.append((_ENTITIES, await request.ask(api.search_entities, None, q=text, limit="1")))
    return counts


async def _entities(request: PageRequest, text: str, kind: str) -> Mapping[str, Any]:
    """Return a few entities next to other results, or a full page of entities alone."""
    if not kind:
        return dict(await request.ask(api.search_entities, q=text, limit=_A_FEW))
    narrowed = {} if kind == _ENTITIES else {"kind": kind}
    cursor = select_query(request, "cursor")
    return dict(await request.ask(api.search_entities, None, q=text, **narrowed, **cursor))


def highlights(snippet: str) -> list[tuple[str, bool]]:
    """Return the parts of a snippet as plain text, each with a flag for matches.

    Only the markers of matches are unescaped `<mark>` elements; those in the text are escaped.
    """
    parts = _MARK.split(snippet)
    return [(unescape(part), number % 2 == 1) for number, part in enumerate(parts) if part]


PAGES = (
    ConsolePage(path="/search", view=show_search, template="search.html.j2", section="search"),
)
ACTIONS: tuple[ConsoleAction, ...] = ()
