"""Benchmarks of Tocsin against minimal baselines in the same run, because machines are noisy."""
