"""The delivery queue in the database."""
