"""Compression of ledger steps.

Answers of one kind repeat each other, down to whole incidents. While a run takes its steps, each
is therefore compressed with the first step of its kind as a dictionary, its base, which is
compressed alone. Once the run has ended, many steps become one chunk, which takes a third of that.
"""

from __future__ import annotations

import lzma
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

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


def unpack_question(packed: bytes, base: bytes | None) -> tuple[str, None]:
    """Return the question of a step without the answer, which takes a fraction of the time."""
    unpacker = zlib.decompressobj(_RAW, zdict=_read_dictionary(base))
    found = b""
    while packed and _BREAK not in found:
        found += unpacker.decompress(packed, _CHUNK)
        packed = unpacker.unconsumed_tail
    return found.partition(_BREAK)[0].decode(), None


def _read_dictionary(base: bytes | None) -> bytes:
    return b"" if base is None else zlib.decompressobj(_RAW).decompress(base, _DICTIONARY_BYTES)


Bases = Mapping[int, bytes]
"""The compressed bases of some steps, by number."""


# Higher presets save a sixth more, and take five times as long
_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 1, "pb": 0}]


def pack_chunk(steps: Sequence[Mapping[str, Any]]) -> bytes:
    """Compress the values of steps together, column by column."""
    columns = {name: [step[name] for step in steps] for name in steps[0]}
    return lzma.compress(orjson.dumps(columns), check=lzma.CHECK_CRC32, filters=_FILTERS)


def unpack_chunk(chunk: bytes) -> list[dict[str, Any]]:
    """Return the values of the steps of a chunk, in JSON's types."""
    columns = orjson.loads(lzma.decompress(chunk))
    return [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]
