"""Whatever is done to a key in whatever order, exactly the right values of it are accepted."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import count

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)
from sqlalchemy import create_engine

from full_run import scale_examples
from tocsin.credentials import (
    ApiKey,
    KeyStatus,
    NotActiveError,
    create_api_key,
    disable_api_key,
    load_api_key,
    rotate_api_key,
)
from tocsin.store.tables import api_keys

KEY_ID = "k" * 16
MOMENT = timedelta(microseconds=1)

graces = st.integers(0, 30).map(lambda days: timedelta(days=days))
lives = st.integers(1, 90).map(lambda days: timedelta(days=days))


class KeyLife(RuleBasedStateMachine):
    """One key in a database, beside a model that knows of each value until when it is accepted."""

    def __init__(self) -> None:
        super().__init__()
        self.now = datetime(2026, 11, 21, 12, tzinfo=UTC)
        self.values = (f"hash {number}" for number in count())
        self.until: dict[str, datetime] = {}
        self.disabled = False
        self.engine = create_engine("sqlite://")
        self.connection = self.engine.connect()
        api_keys.create(self.connection)

    def teardown(self) -> None:
        self.connection.close()
        self.engine.dispose()

    @initialize(life=lives)
    def create(self, life: timedelta) -> None:
        self.newest = next(self.values)
        self.expiry = self.until[self.newest] = self.now + life
        key = ApiKey(
            id="1",
            key_id=KEY_ID,
            prefix="sk_live_",
            name="playbooks",
            description="",
            scopes=(),
            secret_hash=self.newest,
            created_by="ana",
            created_at=self.now,
            updated_at=self.now,
            expires_at=self.expiry,
        )
        create_api_key(self.connection, key)

    @rule(grace=graces, life=st.none() | lives)
    def rotate(self, grace: timedelta, life: timedelta | None) -> None:
        fresh = next(self.values)
        expires_at = None if life is None else self.now + life
        if self.disabled or self.now >= self.expiry:
            with pytest.raises(NotActiveError):
                self._rotate(fresh, grace, expires_at)
            return
        self._rotate(fresh, grace, expires_at)
        self.expiry = expires_at or self.expiry
        for value, until in self.until.items():
            end = self.now + grace if value == self.newest else self.now
            self.until[value] = min(until, end, self.expiry)
        self.until[fresh] = self.expiry
        self.newest = fresh

    def _rotate(self, fresh: str, grace: timedelta, expires_at: datetime | None) -> None:
        rotate_api_key(
            self.connection, KEY_ID, fresh, now=self.now, grace=grace, expires_at=expires_at
        )

    @precondition(lambda self: len(self.until) > 2)  # what comes after is dull
    @rule()
    def disable(self) -> None:
        _, changed = disable_api_key(self.connection, KEY_ID, self.now)
        assert changed != self.disabled
        self.disabled = True
        self.until = dict.fromkeys(self.until, self.now)

    @rule(duration=st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=9)))
    def advance(self, duration: timedelta) -> None:
        self.now += duration

    @precondition(lambda self: self._ahead())
    @rule(data=st.data(), before=st.booleans())
    def advance_to_where_a_value_ends(self, data: st.DataObject, *, before: bool) -> None:
        end = data.draw(st.sampled_from(self._ahead()))
        self.now = max(self.now, end - MOMENT if before else end)

    def _ahead(self) -> list[datetime]:
        return sorted({until for until in self.until.values() if self.now < until})

    @invariant()
    def exactly_the_right_values_are_accepted(self) -> None:
        key = load_api_key(self.connection, KEY_ID)
        assert key is not None
        active = key.status(self.now) is KeyStatus.ACTIVE
        accepted = set(key.hashes(self.now)) if active else set()
        assert accepted == {value for value, until in self.until.items() if self.now < until}
        assert len(accepted) <= 2

    @invariant()
    def the_record_says_until_when_the_value_before_is_accepted(self) -> None:
        key = load_api_key(self.connection, KEY_ID)
        assert key is not None
        others = [until for value, until in self.until.items() if value != self.newest]
        ends = [until for until in others if self.now < until]
        assert key.previous_end(self.now) == (ends[0] if ends else None)


KeyLife.TestCase.settings = settings(max_examples=scale_examples(100), stateful_step_count=40)
TestKeyLife = KeyLife.TestCase
