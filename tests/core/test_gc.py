"""Garbage collector settings."""

from __future__ import annotations

import gc
from time import thread_time

from tocsin import gc as collector
from tocsin.sandbox import Allowance

FEW = 0.02


def test_collection_time_does_not_count_toward_template_limits():
    collector.tune()
    gc.unfreeze()  # so that collections take long
    try:
        with Allowance(1_000, FEW) as allowance:
            allowance.look()
            began = thread_time()
            while thread_time() - began < 2 * FEW:
                gc.collect()
            allowance.look()
    finally:
        collector.tune()
