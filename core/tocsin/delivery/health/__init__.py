"""Health of receivers: circuit breaker, stored status and rate limit."""
