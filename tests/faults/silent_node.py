"""A node that goes silent in the middle of a transaction: run as a process of its own.

Arguments: the database, what it does (`freeze` or `vanish`), and the limits that differ.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
import time

from sqlalchemy import Connection

from tocsin.store import INCIDENT_CHANGE, allot_numbers, lock_exclusively, open_database, parse_url
from tocsin.store import postgres as store_postgres

TCP_REPAIR = 19  # linux/tcp.h; closing a socket in this mode sends nothing
LOCKED = "locked\n"
NOT_PERMITTED = "not permitted\n"


def go_silent(connection: Connection, how: str) -> None:
    """Hold the locks of routing and of intake, and never come to the end of the transaction."""
    lock_exclusively(connection, "routing")
    allot_numbers(connection, INCIDENT_CHANGE, 1)
    if how == "vanish":
        driver = connection.connection.driver_connection
        connected = driver._transport.get_extra_info("socket")
        try:
            connected.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 1)
        except PermissionError:
            os.write(1, NOT_PERMITTED.encode())
            sys.exit()
        os.close(connected.fileno())
    os.write(1, LOCKED.encode())
    if how == "freeze":
        os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(600)


async def main(url: str, how: str, limits: str) -> None:
    store_postgres.SESSION_LIMITS = {**store_postgres.SESSION_LIMITS, **json.loads(limits)}
    await open_database(parse_url(url)).write(go_silent, how)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
