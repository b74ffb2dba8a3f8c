"""Example provider for Tocsin."""

from __future__ import annotations

from tocsin import Provider, hookimpl
from tocsin_example.provider import ExampleProvider


@hookimpl
def tocsin_providers() -> type[Provider]:
    """Return the provider."""
    return ExampleProvider
