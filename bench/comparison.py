"""Alternating measurements of variants, and their comparison."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from statistics import median

Measure = Callable[[], Awaitable[float]]
OURS = "Tocsin"


async def interleave(variants: Mapping[str, Measure], rounds: int) -> dict[str, list[float]]:
    """Return the rates of each variant, one for each round; an extra first round is a warm-up."""
    rates: dict[str, list[float]] = {name: [] for name in variants}
    for number in range(rounds + 1):
        for name, measure in variants.items():
            rate = await measure()
            if number:
                rates[name].append(rate)
    return rates


def report_times(what: str, unit: str, rates: Mapping[str, list[float]]) -> None:
    """Print each rate, and Tocsin's time in multiples of the others' time."""
    _report(what, f"{unit}/s", "time, Tocsin / other", rates, lambda ours, other: other / ours)


def report_rates(what: str, unit: str, rates: Mapping[str, list[float]]) -> None:
    """Print each rate, and Tocsin's rate as a fraction of the others' rate."""
    _report(what, f"{unit}/s", "rate, Tocsin / other", rates, lambda ours, other: ours / other)


def _report(
    what: str,
    rate: str,
    ratio: str,
    rates: Mapping[str, list[float]],
    compare: Callable[[float, float], float],
) -> None:
    print(f"\n| {what} | {rate} | {ratio} |\n|---|---:|---:|")
    for name, values in rates.items():
        ratios = list(map(compare, rates[OURS], values))
        compared = "" if name == OURS else _spread(ratios, ".2f")
        print(f"| {name} | {_spread(values, ',.0f')} | {compared} |", flush=True)


def _spread(values: list[float], form: str) -> str:
    return f"{median(values):{form}} ({min(values):{form}} to {max(values):{form}})"
