"""The handlers, one module per resource, each beside its models."""
