"""Connectors that Tocsin ships: providers under `siem`, channels under `soar`."""
