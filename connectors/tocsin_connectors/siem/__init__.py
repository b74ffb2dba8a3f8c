"""Providers, one module or package each."""
