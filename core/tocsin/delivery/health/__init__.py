"""How receivers do, and what they may get: the breaker, its record, and the pace."""
