"""A part of the graph as STIX 2.1, for other platforms to take in.

https://docs.oasis-open.org/cti/stix/v2.1/os/stix-v2.1-os.html; sections are named where they rule.
"""

from tocsin.knowledge.graph.stix.bundle import export_stix

__all__ = ["export_stix"]
