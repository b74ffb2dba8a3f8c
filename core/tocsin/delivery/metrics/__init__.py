"""Metrics of delivery."""
