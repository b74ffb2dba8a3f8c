"""The graph of entities, incidents, techniques and sessions, in which every edge says its sources.

What incidents say by themselves is read from their own tables; the rest is recorded here.
"""

from tocsin.knowledge.graph.latest import latest_incidents
from tocsin.knowledge.graph.nodes import canonical, is_known
from tocsin.knowledge.graph.paths import Path, find_path
from tocsin.knowledge.graph.recording import Seen, record_relations
from tocsin.knowledge.graph.statistics import Count, GraphStats, graph_stats
from tocsin.knowledge.graph.stix import export_stix
from tocsin.knowledge.graph.walking import DEEPEST, neighbourhood

__all__ = [
    "DEEPEST",
    "Count",
    "GraphStats",
    "Path",
    "Seen",
    "canonical",
    "export_stix",
    "find_path",
    "graph_stats",
    "is_known",
    "latest_incidents",
    "neighbourhood",
    "record_relations",
]
