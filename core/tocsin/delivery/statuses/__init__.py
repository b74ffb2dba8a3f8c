"""Statuses of the objects that Tocsin keeps at receivers, and how they match their incidents."""
