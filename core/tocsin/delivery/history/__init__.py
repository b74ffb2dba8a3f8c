"""What became of deliveries: reading them back, sending them again, removing them."""
