"""What follows from the end of a run, in the transaction that ends it."""
