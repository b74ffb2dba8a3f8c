"""Answers to an investigator's questions from history, providers and enrichers."""
