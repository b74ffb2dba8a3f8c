"""Rate limits: token buckets in memory, shared by nodes through the database off the path."""

from tocsin.limits.buckets import Buckets, Quota, Standing
from tocsin.limits.fields import rate_limit_fields
from tocsin.limits.sharing import Sharing

__all__ = ["Buckets", "Quota", "Sharing", "Standing", "rate_limit_fields"]
