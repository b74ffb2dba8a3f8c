"""Vendor drift in `tocsin check`: contract comparisons and API retirements."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from tocsin.clock import SystemClock
from tocsin.errors import PluginFailure
from tocsin.hookspecs import Provider
from tocsin.shapes import RecordContract, ShapeSample, compare_samples, read_shape

_TIMEOUT_SECONDS = 30


def list_retirement_warnings(provider: Provider) -> list[str]:
    """Return warnings about APIs that will soon be retired."""
    now = SystemClock().now()
    retirements = provider.list_retirements(provider.settings)
    return [one.describe(now) for one in retirements if one.is_due(now)]


async def find_drift_warnings(provider: Provider) -> list[str]:
    """Return the differences between a few live records and their contract."""
    now, warnings = SystemClock().now(), list[str]()
    for stream in provider.streams():
        if contract := provider.record_contracts.get(stream):
            try:
                async with asyncio.timeout(_TIMEOUT_SECONDS):
                    records = await provider.sample(stream)
            except (PluginFailure, TimeoutError) as error:
                reason = str(error) or f"no response within {_TIMEOUT_SECONDS} seconds"
                warnings.append(f"{stream}: cannot compare records with the contract: {reason}")
            else:
                samples = [ShapeSample(now, read_shape(record, contract)) for record in records]
                warnings += _describe_differences(stream, contract, samples)
    return warnings


def _describe_differences(
    stream: str, contract: RecordContract, samples: list[ShapeSample]
) -> Iterator[str]:
    for path, expected, found in compare_samples(contract, samples):
        seen = f"is {found}, not {expected}," if found else "is missing"
        yield f"{stream}: {path} {seen} in the latest records (compared: {len(samples)})"
