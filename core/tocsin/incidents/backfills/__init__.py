"""Reading stretches of the past, as jobs in the database."""
