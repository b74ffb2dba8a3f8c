"""Composition root: builds a node and runs it until it is stopped."""

from tocsin.node.composition import open_node, serve
from tocsin.node.configuration import apply_file, plan_file
from tocsin.node.process import ServiceNode

__all__ = ["ServiceNode", "apply_file", "open_node", "plan_file", "serve"]
