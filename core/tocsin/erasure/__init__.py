"""Erasure of a person's data, or any other value, from everything that is stored."""

from tocsin.erasure.eraser import ERASURE_PURPOSE, Eraser, ErasureRequest, parse_entity
from tocsin.erasure.tombstones import TombstoneFile, follow_erasures

__all__ = [
    "ERASURE_PURPOSE",
    "Eraser",
    "ErasureRequest",
    "TombstoneFile",
    "follow_erasures",
    "parse_entity",
]
