"""Change of the encryption key: nothing is lost at any moment, and no key is given up too early."""

from __future__ import annotations

import random

import pytest
from cryptography.fernet import Fernet
from pydantic import SecretStr
from sqlalchemy import insert, select, text, update

from delivery_rows import add_destination
from tocsin.credentials import Vault, load_encryption_keys, open_proven_vault
from tocsin.credentials import encryption_keys as module
from tocsin.credentials.encrypted_values import count_values, list_encrypted_columns
from tocsin.credentials.key_rotation import PASS_INTERVAL, KeyRotation
from tocsin.credentials.oidc_code_flow import RefreshGrant, SealedGrants
from tocsin.credentials.signing_keys import Purpose, SigningKeys
from tocsin.errors import OperatorError
from tocsin.metrics import Metrics
from tocsin.settings import Settings
from tocsin.store import record_heartbeat
from tocsin.store.tables import (
    GRANT_PURPOSE,
    audit,
    console_sessions,
    destinations,
    metadata,
    signing_keys,
)

OLD, NEW, THIRD = (Fernet.generate_key().decode() for _ in range(3))
RETAINED = ("audit", "erasure")
SECRETS = 7


def find_id(key: str) -> str:
    return Vault(key, source="test").current_id


@pytest.fixture
def settings(migrated_url) -> Settings:
    return Settings(database_url=migrated_url.render_as_string(hide_password=False))


class Fleet:
    """Nodes of one database, each with keys of its own."""

    def __init__(self, database, settings, clock, monkeypatch) -> None:
        self.database, self.settings, self.clock = database, settings, clock
        self.nodes: dict[int, KeyRotation] = {}
        self.vaults: dict[int, Vault] = {}
        running = lambda _, number: number in self.nodes  # noqa: E731 - a single expression
        monkeypatch.setattr("tocsin.store.heartbeats._is_running", running)

    async def open(self, *keys: str) -> Vault:
        """Open the vault as a node does that starts with these keys."""
        given = {"encryption_key": SecretStr("\n".join(keys))}
        return await open_proven_vault(self.settings.model_copy(update=given), self.database)

    async def start(self, number: int, *keys: str) -> None:
        """Start a node, or start it again with other keys."""
        vault = self.vaults[number] = await self.open(*keys)
        meters = {"number": number, "metrics": Metrics(self.clock), "retained": RETAINED}
        self.nodes[number] = KeyRotation(self.database, vault, self.clock, **meters)
        await self.beat(number)

    async def beat(self, number: int) -> None:
        keys = self.nodes[number].describe()
        name, now = f"node-{number}", self.clock.now()
        await self.database.write(record_heartbeat, number, name, [], now, encryption_keys=keys)

    async def step(self, number: int) -> None:
        """Let a node make one step, after which it shows its keys."""
        await self.nodes[number].step()
        await self.beat(number)

    async def run(self, passes: int = 4) -> None:
        """Let all nodes work for some time."""
        for _ in range(passes):
            for number in self.nodes:
                await self.step(number)
            self.clock.advance(seconds=PASS_INTERVAL.total_seconds())
            for number in self.nodes:
                await self.beat(number)

    async def states(self) -> dict[str, str]:
        keys = await self.database.read(load_encryption_keys)
        return {key.id: key.state.value for key in keys}


@pytest.fixture
def fleet(database, settings, clock, monkeypatch) -> Fleet:
    return Fleet(database, settings, clock, monkeypatch)


def fill(connection, vault: Vault, clock) -> None:
    """Store a secret of each kind, as the service does."""
    for purpose in Purpose:
        SigningKeys(purpose, vault).obtain_signing_key(connection, clock.now())
    for number in range(SECRETS):
        name = f"soc-{number}"
        add_destination(connection, name)
        is_it = destinations.c.name == name
        secrets = vault.encrypt(f"secret {number}".encode())
        connection.execute(update(destinations).where(is_it).values(secrets=secrets))
        grant = SealedGrants(lambda: vault.open_cipher(GRANT_PURPOSE)).seal(
            RefreshGrant(f"token {number}", "nonce")
        )
        row = {"digest": f"{number:064}", "principal": "ana", "name": "Ana", "role": "admin"}
        row |= {"begun_at": clock.now(), "expires_at": clock.now(), "sealed_grant": grant}
        connection.execute(insert(console_sessions).values(row))


def read_all(connection, vault: Vault, now) -> list[str]:
    """Return every secret, as the service reads it."""
    found = [f"{vault.derive(purpose).hex()}" for purpose in RETAINED]
    for purpose in Purpose:
        key = SigningKeys(purpose, vault).load_signing_key(connection, now)
        found.append(str(key and key.id))
    secrets = connection.scalars(select(destinations.c.secrets).order_by("name"))
    found += [vault.decrypt(secret).decode() for secret in secrets]
    grants = SealedGrants(lambda: vault.open_cipher(GRANT_PURPOSE))
    query = select(console_sessions.c.sealed_grant).order_by(console_sessions.c.digest)
    return found + [str(grants.open(sealed)) for sealed in connection.scalars(query)]


async def test_a_fleet_changes_its_key_and_every_secret_stays(fleet, database, clock):
    await fleet.start(1, OLD)
    await database.write(fill, fleet.vaults[1], clock)
    before = await database.read(read_all, fleet.vaults[1], clock.now())
    await fleet.start(2, OLD)
    await fleet.run()
    await fleet.start(1, NEW, OLD)
    await fleet.run()
    assert await fleet.states() == {find_id(OLD): "current"}  # node 2 cannot read the new one
    await fleet.start(2, NEW, OLD)
    await fleet.run(1)
    assert await fleet.states() == {find_id(NEW): "current", find_id(OLD): "previous"}
    for number in fleet.nodes:
        assert await database.read(read_all, fleet.vaults[number], clock.now()) == before
    await fleet.run()
    assert await fleet.states() == {find_id(NEW): "current", find_id(OLD): "retired"}
    vault = await fleet.open(NEW)
    assert await database.read(read_all, vault, clock.now()) == before
    assert await database.read(read_all, await fleet.open(NEW, OLD), clock.now()) == before
    with pytest.raises(OperatorError, match=f"uses the key {find_id(NEW)}"):
        await fleet.open(OLD)
    query = select(audit.c.action).where(audit.c.action.startswith("encryption-key"))
    actions = await database.read(lambda connection: connection.scalars(query).all())
    assert actions == ["encryption-key.change", "encryption-key.retire"]


async def test_a_node_without_the_earlier_key_is_refused_while_values_need_it(
    fleet, database, clock
):
    await fleet.start(1, OLD)
    await database.write(fill, fleet.vaults[1], clock)
    await fleet.step(1)
    with pytest.raises(OperatorError, match="does not match the database"):
        await fleet.open(NEW)
    await fleet.start(1, NEW, OLD)
    await fleet.nodes[1]._begin()  # and no more: a node that was killed here
    missing = (
        rf"the key {find_id(OLD)} is missing, but some stored values \(16\) are still encrypted"
    )
    with pytest.raises(OperatorError, match=missing):
        await fleet.open(NEW)


async def test_a_value_of_the_earlier_key_that_is_stored_late_is_found(fleet, database, clock):
    await fleet.start(1, OLD)
    await database.write(fill, fleet.vaults[1], clock)
    late = fleet.vaults[1].encrypt(b"secret 0")
    await fleet.run()
    await fleet.start(1, NEW, OLD)
    await fleet.run()
    assert (await fleet.states())[find_id(OLD)] == "retired"
    is_it = destinations.c.name == "soc-0"
    put_back = update(destinations).where(is_it).values(secrets=late)
    await database.write(lambda connection: connection.execute(put_back) and None)
    await fleet.run(1)
    await fleet.run()
    assert (await database.read(count_values, fleet.vaults[1])).keys() == {find_id(NEW)}
    assert (await fleet.states())[find_id(OLD)] == "retired"


async def test_a_key_that_was_given_up_still_verifies_what_it_has_sealed(fleet, database, clock):
    await fleet.start(1, OLD)
    await database.write(fill, fleet.vaults[1], clock)
    await fleet.start(1, NEW, OLD)
    await fleet.run()
    seal_key = fleet.vaults[1].derive("audit")
    vault = Vault(THIRD, source="test")
    assert await database.write(module.forget_lost_keys, vault)
    assert vault.derive("audit") != seal_key
    leaked = Vault(NEW, source="test")
    await database.read(module.adopt_lost_keys, leaked)
    assert leaked.derive("audit") == seal_key
    await database.write(lambda c: c.execute(signing_keys.delete()) and None)
    await fleet.start(1, THIRD)
    await fleet.run(1)
    assert await fleet.states() == {find_id(THIRD): "current"}
    assert not await database.write(module.forget_lost_keys, await fleet.open(THIRD))


async def test_no_key_is_retired_while_a_node_still_encrypts_with_it(fleet, database, clock):
    await fleet.start(1, NEW, OLD)
    await fleet.start(2, NEW, OLD)
    await database.write(fill, fleet.vaults[1], clock)
    for _ in range(6):  # node 2 is slow: it beats, and makes no step
        await fleet.step(1)
        clock.advance(seconds=PASS_INTERVAL.total_seconds())
        for number in fleet.nodes:
            await fleet.beat(number)
    assert (await fleet.states())[find_id(OLD)] == "previous"
    await fleet.run()
    assert (await fleet.states())[find_id(OLD)] == "retired"


class Killed(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("seed", range(6))
async def test_a_kill_between_any_two_transactions_loses_nothing(
    fleet, database, clock, monkeypatch, seed
):
    """Nodes end at random moments, start again with the same keys, and finish two changes."""
    chance = random.Random(seed)
    monkeypatch.setattr("tocsin.credentials.key_rotation.BATCH", 3)
    await fleet.start(1, OLD)
    await database.write(fill, fleet.vaults[1], clock)
    before = await database.read(read_all, fleet.vaults[1], clock.now())
    await fleet.run(1)

    def fail_sometimes(run):
        async def operate(*arguments, **options):
            result = await run(*arguments, **options)
            if chance.random() < 0.15:
                raise Killed
            return result

        return operate

    for keys in ((NEW, OLD), (THIRD, NEW)):
        for number in (1, 2):
            await fleet.start(number, *keys)
        with monkeypatch.context() as patch:
            for name in ("write", "write_behind"):
                patch.setattr(database, name, fail_sometimes(getattr(database, name)))
            for _ in range(30):
                number = chance.choice((1, 2))
                try:
                    await fleet.step(number)
                except Killed:
                    vault = fleet.vaults[number] = await fleet.open(*keys)
                    options = {"metrics": Metrics(clock), "retained": RETAINED}
                    fleet.nodes[number] = KeyRotation(
                        database, vault, clock, number=number, **options
                    )
                clock.advance(seconds=chance.choice((1, 5, 31)))
        for number in (1, 2):
            assert await database.read(read_all, fleet.vaults[number], clock.now()) == before
        clock.advance(seconds=120)  # the end of a lease of a node that was killed
        await fleet.run(6)
        assert (await database.read(count_values, fleet.vaults[1])).keys() == {find_id(keys[0])}
    assert await fleet.states() == {
        find_id(THIRD): "current",
        find_id(NEW): "retired",
        find_id(OLD): "retired",
    }
    assert await database.read(read_all, await fleet.open(THIRD), clock.now()) == before


async def test_every_column_that_holds_a_ciphertext_is_declared(fleet, database, clock):
    await fleet.start(1, OLD)
    await database.write(fill, fleet.vaults[1], clock)
    await fleet.run(1)
    await fleet.start(1, NEW, OLD)
    await fleet.run(1)

    def find_ciphertexts(connection) -> set[str]:
        found = set()
        for table in metadata.sorted_tables:
            rows = connection.execute(text(f'SELECT * FROM "{table.name}"')).mappings().all()
            for row in rows:
                for name, value in row.items():
                    if bytes(value if isinstance(value, bytes) else str(value).encode()).startswith(
                        b"gAAAA"
                    ):
                        found.add(f"{table.name}.{name}")
        return found

    declared = {f"{column.table.name}.{column.column.name}" for column in list_encrypted_columns()}
    found = await database.read(find_ciphertexts)
    assert found == declared
