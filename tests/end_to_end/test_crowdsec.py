"""A real detection's whole way: from a log of sshd through a real CrowdSec to the receiver."""

from __future__ import annotations

import pytest

from crowdsec_server import sshd_log

from .service import until


@pytest.mark.full  # one detection's way stands in the ordinary run as well
async def test_each_detection_is_told_once_across_kills_of_either_side(
    reading_it, local_api, receiver
):
    service = reading_it
    addresses = ["203.0.113.7", "203.0.113.8", "203.0.113.9"]

    async def detect(address: str) -> None:
        await local_api.detect(sshd_log(address, ["root", "admin"] * 6))

    await service.start()
    await detect(addresses[0])
    await until(lambda: len(receiver.ids) == 1)
    await service.kill()
    await detect(addresses[1])
    await local_api.kill()
    await service.start()
    await local_api.start()
    await until(lambda: len(receiver.ids) == 2)
    await detect(addresses[2])
    await service.kill()
    await service.start()
    await until(lambda: len(receiver.ids) == 3)
    key = await service.make_key()
    listed = await service.get("/api/v1/incidents", key)
    details = [await service.get(f"/api/v1/incidents/{number}", key) for number in (1, 2, 3)]
    assert listed["total"] == 3
    assert [detail["title"] for detail in details] == ["crowdsecurity/ssh-bf"] * 3
    for address, detail in zip(addresses, details, strict=True):
        assert {"kind": "ip", "value": address, "role": "source"} in detail["entities"]
    assert len(receiver.ids) == len(receiver.numbers) == 3
