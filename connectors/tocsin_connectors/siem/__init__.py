"""Providers, one package each."""
