"""Files in blocks of whole lines, so that most of them can be told to hold nothing of interest."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import suppress
from typing import BinaryIO

from tocsin_connectors.siem.files.known import KIB
from tocsin_connectors.siem.files.lines import MAX_LINE_LENGTH

BLOCK_SIZE = 1024 * KIB


def read_blocks(file: BinaryIO, size: int, *, compressed: bool) -> Iterator[bytes]:
    """Yield all of a file, the last block first; compressed content comes as it can be had.

    What is left of a line that is too long is no whole line; neither is what is being written, or
    what follows where compressed content is damaged.
    """
    if not compressed:
        yield from _read_backwards(file, size)
        return
    with suppress(EOFError, zlib.error, gzip.BadGzipFile), gzip.GzipFile(fileobj=file) as stream:
        yield from _read_forwards(stream)


def _read_backwards(file: BinaryIO, end: int) -> Iterator[bytes]:
    rest = b""  # of the line that begins before what was read
    while end > 0:
        begin = max(0, end - BLOCK_SIZE)
        file.seek(begin)
        block = file.read(end - begin) + rest
        first = block.find(b"\n") + 1 if begin else 0
        is_cut = begin > 0 and first == 0
        rest = (
            b"" if len(block) > MAX_LINE_LENGTH and is_cut else block if is_cut else block[:first]
        )
        yield b"" if is_cut else block[first:]
        end = begin


def _read_forwards(stream: gzip.GzipFile) -> Iterator[bytes]:
    rest = b""
    while chunk := stream.read(BLOCK_SIZE):
        block = rest + chunk
        last = block.rfind(b"\n") + 1
        rest = block[last:] if len(block) - last <= MAX_LINE_LENGTH else b""
        yield block[:last]
    yield rest
