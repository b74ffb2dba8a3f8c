"""Runs of investigations: each by one node at a time, under a lease."""
