"""What the authors of plugins test with; nothing of the service imports it."""
