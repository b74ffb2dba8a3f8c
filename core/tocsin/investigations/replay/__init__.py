"""Replay of sessions from their ledgers, without asking any source."""
