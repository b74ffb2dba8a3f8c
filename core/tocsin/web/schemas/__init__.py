"""Schemas of what the API takes and returns, one module per resource, each with its examples."""
