"""Processes beside the measuring one."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any

from tocsin import gc


@contextmanager
def child(run: Callable[..., None], *args: Any) -> Iterator[Any]:
    """Run `run(send, *args)` in a separate process, and yield its first message."""
    context = get_context("spawn")
    receiving, sending = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(run, sending.send, *args), daemon=True)
    process.start()
    sending.close()
    try:
        yield receiving.recv()
    finally:
        process.terminate()
        process.join()


def _run(run: Callable[..., None], *args: Any) -> None:
    gc.tune()  # like a node
    run(*args)


def free_port() -> int:
    """Return an unused port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
