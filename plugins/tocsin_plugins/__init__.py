"""Channels, enrichers and the investigator that ship with Tocsin."""
