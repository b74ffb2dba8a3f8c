"""Destinations: as they are kept, made, changed, applied from a file, and tried."""
