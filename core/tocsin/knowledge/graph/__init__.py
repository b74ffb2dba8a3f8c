"""Knowledge graph of entities, incidents, techniques and sessions; every edge has its sources.

Edges of incidents are read from the incident tables; all others are stored by this package.
"""

from tocsin.knowledge.graph.labels import load_incident_labels
from tocsin.knowledge.graph.nodes import is_known_node, normalize_node
from tocsin.knowledge.graph.paths import FoundPath, find_path
from tocsin.knowledge.graph.relations import (
    ObservedRelation,
    digest_relation,
    lock_relations,
    record_relations,
)
from tocsin.knowledge.graph.statistics import BoundedCount, GraphCounts, count_graph
from tocsin.knowledge.graph.stix import export_stix
from tocsin.knowledge.graph.traversal import MAX_DEPTH, find_latest_incidents, find_neighborhood

__all__ = [
    "MAX_DEPTH",
    "BoundedCount",
    "FoundPath",
    "GraphCounts",
    "ObservedRelation",
    "count_graph",
    "digest_relation",
    "export_stix",
    "find_latest_incidents",
    "find_neighborhood",
    "find_path",
    "is_known_node",
    "load_incident_labels",
    "lock_relations",
    "normalize_node",
    "record_relations",
]
