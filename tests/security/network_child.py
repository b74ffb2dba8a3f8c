"""A network of its own, with private, metadata and loopback addresses on which everything listens.

Run in a new network namespace. Requests every URL of the list of bypasses through the guarded
client, and prints as JSON how many connections arrived, after one that is allowed has.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from ipaddress import ip_network
from pathlib import Path

ADDRESSES = (
    *("10.0.0.1", "172.16.0.1", "172.31.255.254", "192.168.0.1", "100.64.0.1", "100.100.100.200"),
    *("169.254.169.254", "169.254.170.2", "168.63.129.16", "192.0.0.192", "192.88.99.1"),
    *("fd00:ec2::254", "fd20:ce::254", "fec0::1", "64:ff9b::7f00:1", "2002:7f00:1::"),
)
ALLOWED = "10.99.0.1"
PORTS = (80, 443)


def set_up() -> None:
    """Bring up loopback, and give it every address."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    for address in (*ADDRESSES, ALLOWED):
        bits = "128" if ":" in address else "32"
        subprocess.run(["ip", "address", "add", f"{address}/{bits}", "dev", "lo"], check=True)


async def main() -> None:
    """Listen, send every request, and print the figures."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from bypasses import HOSTS, NAMES, SPELLINGS
    from tocsin.net import open_client

    arrived: list[str] = []

    async def arrive(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        arrived.append(str(writer.get_extra_info("sockname")[0]))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        writer.close()

    for port in PORTS:
        for host in ("0.0.0.0", "::"):
            await asyncio.start_server(arrive, host, port)
    hosts = [host for spelled in HOSTS.values() for host in spelled]
    names = [name for named in NAMES.values() for name in named]
    urls = [f"{scheme}://{host}/" for host in (*hosts, *names) for scheme in ("http", "https")]
    urls += [url for spelled in SPELLINGS.values() for url in spelled]
    urls += [
        f"{scheme}://{address}/"
        for address in ADDRESSES
        if ":" not in address
        for scheme in ("http", "https")
    ]
    client = open_client(allow_networks=[ip_network("10.99.0.0/16")])
    allowed = await client.request("GET", f"http://{ALLOWED}/")
    reached_before = len(arrived)
    refused = 0
    for url in urls:
        try:
            await client.request("GET", url)
        except Exception:  # noqa: BLE001 - whatever keeps it from being sent
            refused += 1
    await client.close()
    result = {"allowed": allowed.status, "control": reached_before, "urls": len(urls)}
    sys.stdout.write(json.dumps(result | {"refused": refused, "arrived": arrived[reached_before:]}))


if __name__ == "__main__":
    set_up()
    asyncio.run(main())
