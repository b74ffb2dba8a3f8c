"""Loop that brings a new encryption key into use, and encrypts stored values with it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import timedelta

import structlog
from sqlalchemy import Connection, select

from tocsin.clock import Clock
from tocsin.credentials.encrypted_values import (
    count_values,
    list_encrypted_columns,
    reencrypt_batch,
)
from tocsin.credentials.encryption_keys import (
    KEYS,
    EncryptionKeyState,
    KeyChange,
    adopt_keys,
    begin_change,
    is_settled,
    load_encryption_keys,
    record_remaining,
    register_key,
)
from tocsin.credentials.vault import Vault
from tocsin.loops import beat, run_forever
from tocsin.metrics import Metrics
from tocsin.store import Database, Lease
from tocsin.store.tables import encryption_keys

INTERVAL = timedelta(seconds=5)
PASS_INTERVAL = timedelta(seconds=30)
"""The time between two passes over all values, while several keys are configured."""
BATCH = 100
_log = structlog.get_logger()


class KeyRotation:
    """Changes the encryption key, together with the other nodes.

    It does nothing but look at the key of the database while one key is configured.
    """

    def __init__(
        self,
        database: Database,
        vault: Vault,
        clock: Clock,
        *,
        number: int,
        metrics: Metrics,
        retained: Collection[str],
    ) -> None:
        """Take the purposes for which derived values stay when the key changes."""
        self._database = database
        self._vault = vault
        self._clock = clock
        self._number = number
        self._retained = retained
        self._remaining = metrics.gauge(
            "tocsin_encrypted_values_remaining",
            "Stored values that are still encrypted with an earlier encryption key",
        )
        self._waits_for: Collection[str] = ()
        self._has_warned = False
        self._pass_at = clock.now()

    def describe(self) -> Mapping[str, object]:
        """Return the keys of this node, for the others."""
        return {"reads": list(self._vault.key_ids), "encrypts": self._vault.current_id}

    async def run(self) -> None:
        """Follow the keys until cancelled."""
        await run_forever(self._run_step, self._clock, "encryption keys")

    async def _run_step(self) -> None:
        await self.step()
        await self._clock.sleep(INTERVAL)

    async def step(self) -> None:
        """Follow the key of the database, and change it if there is a new one."""
        now = self._clock.now()
        stored = await self._database.read(load_encryption_keys)
        if not stored:
            await self._database.write(register_key, self._vault, now)
        await self._database.read(adopt_keys, self._vault)
        if len(self._vault.key_ids) > 1:
            await self._begin()
            if now >= self._pass_at:
                await self._reencrypt()
                self._pass_at = self._clock.now() + PASS_INTERVAL
            stored = await self._database.read(load_encryption_keys)
        self._remaining.set(sum(key.remaining or 0 for key in stored))

    async def _begin(self) -> None:
        newest = self._vault.key_ids[0]
        if newest == self._vault.current_id:
            return
        change: KeyChange = await self._database.write(
            begin_change, self._vault, self._retained, self._clock.now()
        )
        if change.is_done:
            _log.info("encryption key changed; encrypting stored values again", key=newest)
            await self._database.read(adopt_keys, self._vault)
        is_lasting = change.waits_for == self._waits_for  # the heartbeats may be old
        if change.waits_for and is_lasting and not self._has_warned:
            self._has_warned = True
            advice = "configure the new key on these nodes, too"
            nodes = list(change.waits_for)
            _log.warning("new encryption key not used yet", key=newest, nodes=nodes, advice=advice)
        self._waits_for = change.waits_for

    async def _reencrypt(self) -> None:
        """Encrypt all values again that need it; nothing if another node does."""
        lease = await self._database.write(self._acquire)
        if lease is None:
            return
        settled = await self._database.read(is_settled, self._vault, self._clock.now())
        for column in list_encrypted_columns():
            after: str | None = ""
            while after is not None:
                after = await self._database.write_behind(
                    reencrypt_batch, self._vault, column, after, BATCH
                )
                beat()
            if not await self._database.write(lease.renew, self._clock.now()):
                return
        counts = await self._database.read(count_values, self._vault)
        retired = await self._database.write(
            record_remaining, self._vault, counts, self._clock.now(), settled=settled
        )
        await self._database.write(lease.release)
        for key_id in retired:
            advice = "remove it from the configuration of all nodes"
            _log.info("earlier encryption key no longer needed", key=key_id, advice=advice)

    def _acquire(self, connection: Connection) -> Lease | None:
        now = self._clock.now()
        is_current = encryption_keys.c.state == EncryptionKeyState.CURRENT
        row = connection.execute(select(encryption_keys).where(is_current)).one()
        is_alone = len(load_encryption_keys(connection)) == 1
        if is_alone or not KEYS.is_free(row, now):
            return None
        token = KEYS.acquire(connection, row, row.id, self._number, now)
        return None if token is None else Lease(KEYS, row.id, token)
