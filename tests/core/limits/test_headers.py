"""What a response says of a limit."""

from __future__ import annotations

from tocsin.limits import Quota, QuotaStatus, build_rate_limit_headers

QUOTA = Quota(per_minute=600, burst=100)


def test_a_response_tells_the_policy_and_what_is_left_of_it():
    granted = QuotaStatus(allowed=True, remaining=12, reset_after=30, retry_after=0)
    assert build_rate_limit_headers("credential", QUOTA, granted) == {
        "RateLimit-Policy": '"credential";q=600;w=60',
        "RateLimit": '"credential";r=12;t=30',
    }


def test_a_refusal_tells_when_to_try_again_and_its_window_ends_no_later():
    refused = QuotaStatus(allowed=False, remaining=0, reset_after=30, retry_after=2)
    assert build_rate_limit_headers("credential", QUOTA, refused) == {
        "RateLimit-Policy": '"credential";q=600;w=60',
        "RateLimit": '"credential";r=0;t=2',
        "Retry-After": "2",
    }
