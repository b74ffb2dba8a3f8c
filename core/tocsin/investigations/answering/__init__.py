"""Answering questions: from what is kept here, from providers, and from enrichers."""
