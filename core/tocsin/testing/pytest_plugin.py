"""The pytest plugin that comes with Tocsin: what it brings is imported when a test asks for it."""
