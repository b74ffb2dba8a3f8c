"""Rate limits: token buckets in memory, synchronized between nodes in the background."""

from tocsin.limits.buckets import Quota, QuotaStatus, TokenBuckets, build_rate_limit_headers
from tocsin.limits.synchronizer import BucketSynchronizer

__all__ = ["BucketSynchronizer", "Quota", "QuotaStatus", "TokenBuckets", "build_rate_limit_headers"]
