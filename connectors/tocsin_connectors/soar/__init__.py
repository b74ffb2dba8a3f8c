"""Channels of SOAR and case platforms: an object for what an event is about, kept up to date."""
