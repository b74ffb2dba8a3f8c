"""Which destinations an event concerns."""
