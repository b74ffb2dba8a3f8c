"""Rate limits: token buckets in memory, shared by nodes through the database off the path."""

from tocsin.limits.buckets import Quota, QuotaStatus, TokenBuckets, build_rate_limit_headers
from tocsin.limits.synchronizer import BucketSynchronizer

__all__ = ["BucketSynchronizer", "Quota", "QuotaStatus", "TokenBuckets", "build_rate_limit_headers"]
