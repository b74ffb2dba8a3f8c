"""Delivery workers, their pool, and attempts."""
