"""Facts about secrets are found by digests that only this process knows, and for a limited time."""

from __future__ import annotations

from datetime import timedelta
from threading import Thread

from tocsin.credentials.digest_cache import DigestCache


def test_a_fact_is_forgotten_after_its_lifetime(clock):
    cache = DigestCache(clock, lifetime=timedelta(minutes=15))
    cache.add(b"a", "stored")
    clock.advance(minutes=14)
    assert cache.recall(b"a") == "stored"
    clock.advance(minutes=1)
    assert cache.recall(b"a") is None


def test_the_least_recently_used_is_forgotten_first(clock):
    cache = DigestCache(clock, size=2)
    cache.add(b"a", "stored")
    cache.add(b"b", "stored")
    cache.recall(b"a")
    cache.add(b"c", "stored")
    assert [cache.recall(name) for name in (b"a", b"b", b"c")] == ["stored", None, "stored"]


def test_parts_cannot_be_shifted_between_identifier_and_secret(clock):
    cache = DigestCache(clock)
    assert cache.digest("ab", "c") != cache.digest("a", "bc")
    assert cache.digest("a", "1:b") != cache.digest("a1:", "b")


def test_two_processes_know_a_value_by_different_names(clock):
    assert DigestCache(clock).digest("key", "secret") != DigestCache(clock).digest("key", "secret")


def test_many_threads_may_ask_at_once(clock):
    cache = DigestCache(clock, size=10)

    def work() -> None:
        for n in range(5000):
            cache.add(bytes([n % 50]), "stored")
            cache.recall(bytes([n % 7]))

    threads = [Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(cache._entries) == 10
