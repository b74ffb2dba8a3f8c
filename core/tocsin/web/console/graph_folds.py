"""Folding: nodes with the same kind, severity and relations become one node."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from tocsin.web.console.graph_layout import NodeKey, parse_node

FOLDED_FROM = 4
"""Minimum number of equal nodes that are folded into one."""
_NOUNS = {
    "session": ("investigation", "investigations"),
    "ip": ("IP address", "IP addresses"),
    "url": ("URL", "URLs"),
    "cve": ("CVE", "CVEs"),
    "file_hash": ("file hash", "file hashes"),
    "mailbox": ("mailbox", "mailboxes"),
    "process": ("process", "processes"),
    "cloud_resource": ("cloud resource", "cloud resources"),
}
"""Singular and plural of kinds whose plural is not their name with an `s`."""
_Relations = frozenset[tuple[NodeKey, str, bool]]


def fold_equals(found: Mapping[str, Any], opened: Collection[NodeKey] = ()) -> dict[str, Any]:
    """Return a neighborhood in which equal nodes are one node; `members` is their number.

    Nodes that equal one in `opened` stay apart.
    """
    groups: dict[tuple[str, str | None, _Relations], list[Mapping[str, Any]]] = defaultdict(list)
    relations = _collect_relations(found["edges"])
    for node in found["nodes"]:
        key = parse_node(node)
        own = frozenset({(key, "", True)}) if key == parse_node(found["entity"]) else frozenset()
        groups[node["kind"], node["severity"], own | relations[key]].append(node)
    folded: dict[NodeKey, Mapping[str, Any]] = {}
    for members in groups.values():
        keys = list(map(parse_node, members))
        if len(members) >= FOLDED_FROM and set(keys).isdisjoint(opened):
            folded |= dict.fromkeys(keys, _fold(members))
    nodes = {parse_node(node): node for node in _replace(found["nodes"], folded)}
    return {
        **found,
        "nodes": list(nodes.values()),
        "edges": _fold_edges(found["edges"], folded),
    }


def _collect_relations(edges: Iterable[Mapping[str, Any]]) -> Mapping[NodeKey, _Relations]:
    """Return the other node, type and direction of each edge, by node."""
    relations: dict[NodeKey, set[tuple[NodeKey, str, bool]]] = defaultdict(set)
    for edge in edges:
        source, target = parse_node(edge["source"]), parse_node(edge["target"])
        relations[source].add((target, edge["type"], True))
        relations[target].add((source, edge["type"], False))
    return defaultdict(frozenset, {node: frozenset(each) for node, each in relations.items()})


def count_nodes(kind: str, number: int) -> str:
    """Return a number of nodes of one kind in words."""
    one, several = _NOUNS.get(kind, (kind, f"{kind}s"))
    return f"{number:,} {one if number == 1 else several}"


def _fold(members: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    kind, first = parse_node(members[0])
    words = count_nodes(kind, len(members))
    # A value that no node of the graph has, so that two folds stay apart
    return {
        "kind": kind,
        "value": f"{words} like {first}",
        "title": words,
        "severity": members[0]["severity"],
        "members": len(members),
        "first": first,
    }


def _replace(
    nodes: Iterable[Mapping[str, Any]], folded: Mapping[NodeKey, Mapping[str, Any]]
) -> Iterable[Mapping[str, Any]]:
    return (folded.get(parse_node(node), node) for node in nodes)


def _fold_edges(
    edges: Iterable[Mapping[str, Any]], folded: Mapping[NodeKey, Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """Return the edges between the remaining nodes, each once with the whole period."""
    kept: dict[tuple[NodeKey, str, NodeKey], dict[str, Any]] = {}
    for edge in edges:
        source, target = _replace((edge["source"], edge["target"]), folded)
        key = parse_node(source), edge["type"], parse_node(target)
        one = kept.setdefault(key, {**edge, "source": source, "target": target})
        one["first_seen"] = min(one["first_seen"], edge["first_seen"])
        one["last_seen"] = max(one["last_seen"], edge["last_seen"])
    return list(kept.values())
