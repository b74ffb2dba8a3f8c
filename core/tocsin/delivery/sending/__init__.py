"""The workers: claiming, attempting, settling."""
