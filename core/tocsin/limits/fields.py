"""The header fields of draft-ietf-httpapi-ratelimit-headers-11, which may still change."""

from __future__ import annotations

from tocsin.limits.buckets import Quota, QuotaStatus


def build_rate_limit_headers(name: str, quota: Quota, standing: QuotaStatus) -> dict[str, str]:
    """Return what a response says of a limit; `Retry-After` (RFC 9110) only where it refuses.

    `name` needs no escaping. The effective window `t` lasts until the bucket is full or, in a
    refusal, until it is worth trying again, because `Retry-After` should not end before it.
    """
    window = standing.reset_after if standing.allowed else standing.retry_after
    fields = {
        "RateLimit-Policy": f'"{name}";q={quota.per_minute};w=60',
        "RateLimit": f'"{name}";r={standing.remaining};t={window}',
    }
    if not standing.allowed:
        fields["Retry-After"] = str(standing.retry_after)
    return fields
