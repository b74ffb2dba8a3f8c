"""Schemas of requests and responses, one module for each resource, with examples."""
