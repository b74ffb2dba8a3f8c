"""Measures Tocsin against bare baselines in the same run, since machines are noisy."""
