"""History of deliveries: lists, replays and retention."""
