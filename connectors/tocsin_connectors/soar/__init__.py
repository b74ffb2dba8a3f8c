"""Channels of SOAR and case platforms, which keep one object per subject up to date."""
