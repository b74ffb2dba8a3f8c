"""A node and three NATS servers in networks of their own, which are split under load.

Run as root in a new network namespace, with the path of a working folder. First the leader is cut
off alone. Then the others are, together, so that the node reaches only the leader, which has no
majority. Prints what senders were answered, and what became of it, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from time import monotonic

from sqlalchemy import make_url

sys.path.insert(0, str(Path(__file__).parents[1]))

import nats
from faults.conftest import account_for
from faults.receiver import Receiver
from intake_service import IntakeService, Senders, prove, read, settle
from nats_servers import NatsServer, run_cluster
from network_links import Link, open_links

HOSTS = ("10.77.0.11", "10.77.0.12", "10.77.0.13")
SPLIT_SECONDS = 25


async def find_leader(servers: list[NatsServer]) -> int:
    """Return which of the servers leads the stream."""
    client = await nats.connect([server.url for server in servers])
    async with asyncio.timeout(60):
        while True:
            found = await client.jetstream().stream_info("TOCSIN_INTAKE")
            if found.cluster is not None and found.cluster.leader:
                break
            await asyncio.sleep(0.5)
    await client.close()
    return [server.name for server in servers].index(found.cluster.leader)


async def watch_split(service: IntakeService, senders: Senders) -> dict[str, object]:
    """Return what senders are answered during a split."""
    await asyncio.sleep(1)  # until what was on its way at the split is answered
    before = senders.answers.copy()
    begun = monotonic()
    await asyncio.sleep(SPLIT_SECONDS)
    answers = senders.answers - before
    ready = await service.read_ready()
    return {
        "seconds": monotonic() - begun,
        "accepted": answers[202],
        "stored": answers[200],
        "other": answers.total() - answers[202] - answers[200],
        "ready": ready["code"],
    }


async def measure(
    service: IntakeService, servers: list[NatsServer], links: list[Link]
) -> dict[str, object]:
    """Split the network twice, and return what happened."""
    figures: dict[str, object] = {}
    senders = Senders(service)
    async with senders.pushing():
        await senders.accept(40)
        leader = await find_leader(servers)
        links[leader].cut()
        figures["leader_away"] = await watch_split(service, senders)
        links[leader].plug()
        await service.wait_for_intake()
        await senders.accept(40)
        leader = await find_leader(servers)
        followers = [link for number, link in enumerate(links) if number != leader]
        for link in followers:
            link.plug("far")
        figures["majority_away"] = await watch_split(service, senders)
        for link in followers:
            link.plug()
        await service.wait_for_intake()
        await senders.accept(40)
    missing, repeats = await settle(service, senders)
    stored, _, _ = await read(service)
    return figures | {
        "sent": senders.sent,
        "answered": len(senders.accepted),
        "missing": sorted(missing),
        "repeats": repeats,
        "incidents": len(stored),
        "unaccounted": await prove(service),
    }


async def main(folder: Path, links: list[Link]) -> None:
    async with (
        run_cluster(folder / "nats", links) as servers,
        Receiver() as receiver,
    ):
        home = folder / "tocsin"
        home.mkdir()
        url = make_url(f"sqlite+aiosqlite:///{home}/tocsin.db")
        block = receiver.destination(retry_schedule=["100ms"] * 3)
        service = IntakeService(home, url, servers, block)
        try:
            await service.start()
            await service.wait_for_intake()
            figures = await measure(service, servers, links)
            await account_for(service, receiver.oracle)
            figures["delivered"] = len(receiver.oracle.accepted("soc"))
            figures["delivered_again"] = receiver.oracle.repeats()
        finally:
            await service.kill()
    sys.stdout.write(json.dumps(figures) + "\n")


if __name__ == "__main__":
    with open_links(*HOSTS) as links:
        asyncio.run(main(Path(sys.argv[1]), links))
