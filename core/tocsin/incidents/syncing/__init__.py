"""Reading providers: whose turn it is, what is read, and what follows from failures."""
