"""Change of the encryption key of two nodes that deliver meanwhile, with kill -9 during it."""

from __future__ import annotations

import asyncio
import json

import pytest
from cryptography.fernet import Fernet

from end_to_end.service import until

from .conftest import account_for

OLD, NEW = (Fernet.generate_key().decode() for _ in range(2))


async def wait_for_state(node, state: str) -> list[dict]:
    """Return the keys as `tocsin db keys` shows them, once one has this state."""
    async with asyncio.timeout(150):
        while True:
            status, out, errors = await node.command("db", "keys", "--json")
            assert status == 0, errors
            found = json.loads(out)
            if state in {key["state"] for key in found}:
                return found
            await asyncio.sleep(1)


@pytest.mark.full  # takes minutes; tests/core/credentials/test_key_rotation.py starts no processes
@pytest.mark.timeout(600)
@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
async def test_two_nodes_change_their_key_while_they_deliver_and_are_killed(
    make_service, receiver, sensor, tmp_path
):
    soc = receiver.destination(retry_schedule=["100ms"] * 3)
    nodes = [make_service(soc) for _ in range(2)]
    files = [tmp_path / f"key-{number}" for number in range(2)]
    for node, file in zip(nodes, files, strict=True):
        file.write_text(OLD)
        node.environment.pop("TOCSIN_ENCRYPTION_KEY", None)
        node.environment["TOCSIN_ENCRYPTION_KEY_FILE"] = str(file)
    await nodes[0].start()
    await nodes[1].start(is_applied=True)
    assert (await nodes[0].command("admin", "token"))[0] == 0  # stores a signing key
    sensor.write(20)
    for file in files:  # a running service notices it
        file.with_suffix(".new").write_text(f"{NEW}\n{OLD}\n")
        file.with_suffix(".new").rename(file)
    await wait_for_state(nodes[0], "previous")
    await nodes[0].kill()
    files[0].write_text(NEW)
    status, _, errors = await nodes[0].command("db", "keys")
    [first, *_] = await wait_for_state(nodes[1], "current")
    if status:  # a value still needs it
        assert "are still encrypted with it" in errors
    files[0].write_text(f"{NEW}\n{OLD}\n")
    await nodes[0].start(is_applied=True)
    await nodes[1].kill()
    sensor.write(20)
    await nodes[1].start(is_applied=True)
    found = await wait_for_state(nodes[1], "retired")
    counts = {key["state"]: key["values"] for key in found}
    assert counts == {"current": counts["current"], "retired": 0}
    assert counts["current"] >= 3  # a signing key, and two derived keys
    for node, file in zip(nodes, files, strict=True):
        file.write_text(NEW)
        assert await node.stop() == 0
        await node.start(is_applied=True)
    assert (await nodes[0].command("audit", "verify"))[0] == 0
    sensor.write(20)
    await until(lambda: len(receiver.oracle.accepted("soc")) == 60, seconds=60)
    await account_for(nodes[0], receiver.oracle)
    assert first["key"] == found[0]["key"]
    assert [await node.stop() for node in nodes] == [0, 0]
