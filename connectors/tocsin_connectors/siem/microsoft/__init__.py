"""Shared modules of Sentinel and Defender XDR: mappings, tables and KQL queries."""
