"""The queue of deliveries, and its implementation in the database."""
