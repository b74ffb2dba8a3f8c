"""What the collector of garbage is told."""

from __future__ import annotations

import gc
from time import thread_time

from tocsin import gc as collector
from tocsin.sandbox import Allowance

FEW = 0.02


def test_the_time_of_the_collector_is_held_against_no_template():
    collector.tune()
    gc.unfreeze()  # so that it has much to look through
    try:
        with Allowance(1_000, FEW) as allowance:
            allowance.look()
            began = thread_time()
            while thread_time() - began < 2 * FEW:
                gc.collect()
            allowance.look()
    finally:
        collector.tune()
