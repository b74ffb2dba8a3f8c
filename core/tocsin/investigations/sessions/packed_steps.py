"""Compression of ledger steps: a question with its answer, as one column.

Answers of one kind repeat each other, down to whole incidents. Each step is therefore compressed
with the first step of its kind in the run as a dictionary, its base, which is compressed alone.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field

_DICTIONARY_BYTES = 32_768  # the window of DEFLATE
_CHUNK = 16_384
_RAW = -zlib.MAX_WBITS
_BREAK = b"\n"  # JSON escapes it


@dataclass(frozen=True, slots=True)
class PackedStep:
    """The columns of a compressed step."""

    packed: bytes | None
    base: int | None
    """Number of the step that serves as dictionary; None if the step is compressed alone."""


@dataclass(slots=True)
class StepPacker:
    """Compresses the steps of one run."""

    _bases: dict[str, tuple[int, bytes]] = field(default_factory=dict)

    def pack(self, number: int, kind: str, question: str, answer: str | None) -> PackedStep:
        """Compress a step. Its base has a lower number, so steps are only ever cut after it."""
        content = _join(question, answer)
        first, dictionary = self._bases.get(kind, (number, b""))
        if first < number:
            return PackedStep(_compress(content, dictionary), first)
        if answer is not None:
            self._bases[kind] = number, content[:_DICTIONARY_BYTES]
        return PackedStep(_compress(content), None)

    def drop_from(self, number: int) -> None:
        """Forget the steps from this number on, which are deleted."""
        self._bases = {kind: base for kind, base in self._bases.items() if base[0] < number}


def _join(question: str, answer: str | None) -> bytes:
    parts = (question,) if answer is None else (question, answer)
    return _BREAK.join(part.encode() for part in parts)


def _compress(content: bytes, dictionary: bytes = b"") -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, _RAW, 9, zlib.Z_DEFAULT_STRATEGY, dictionary)
    return packer.compress(content) + packer.flush()


def unpack_step(packed: bytes, base: bytes | None) -> tuple[str, str | None]:
    """Return the question and the answer of a step, given the compressed form of its base."""
    unpacker = zlib.decompressobj(_RAW, zdict=_read_dictionary(base))
    question, _, answer = unpacker.decompress(packed).partition(_BREAK)
    return question.decode(), answer.decode() or None


def unpack_question(packed: bytes, base: bytes | None) -> str:
    """Return the question of a step alone, which takes a fraction of the time."""
    unpacker = zlib.decompressobj(_RAW, zdict=_read_dictionary(base))
    found = b""
    while packed and _BREAK not in found:
        found += unpacker.decompress(packed, _CHUNK)
        packed = unpacker.unconsumed_tail
    return found.partition(_BREAK)[0].decode()


def _read_dictionary(base: bytes | None) -> bytes:
    return b"" if base is None else zlib.decompressobj(_RAW).decompress(base, _DICTIONARY_BYTES)


Bases = Mapping[int, bytes]
"""The compressed bases of some steps, by number."""
