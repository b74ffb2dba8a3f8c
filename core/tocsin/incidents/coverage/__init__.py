"""What was read of each stream: how far, what of it is accounted for, what lies between."""
