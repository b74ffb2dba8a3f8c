"""Google SecOps provider."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

from tocsin import (
    Broken,
    CredentialsRefused,
    Entity,
    Health,
    Incident,
    IncidentStatus,
    Listing,
    Refused,
    SiemEvent,
    Tools,
    Window,
)
from tocsin_connectors.responses import build_from_answer
from tocsin_connectors.siem.idempotency_marker import add_marker, has_marker, read_comments
from tocsin_connectors.siem.lookback import LookbackProvider
from tocsin_connectors.siem.records import child, children, text, union
from tocsin_connectors.siem.retirements import load_retirements
from tocsin_connectors.siem.secops.client import EVERY_RULE, GET_ALERT, SecOpsClient, SecOpsRecord
from tocsin_connectors.siem.secops.contract import CONTRACTS
from tocsin_connectors.siem.secops.mapping import (
    ENTITY_FIELDS,
    STATUS_WORDS,
    build_incident,
    parse_status,
    parse_times,
)
from tocsin_connectors.siem.secops.pagination import DetectionCursor, list_page, probe_page
from tocsin_connectors.siem.secops.permissions import (
    NOT_COUNTED,
    PERMISSIONS,
    examine_curated_rules,
    find_permission_problems,
)
from tocsin_connectors.siem.secops.search import search_events
from tocsin_connectors.siem.secops.settings import SecOpsSettings

_DAY = timedelta(days=1)


class SecOps(LookbackProvider[SecOpsSettings]):
    """Reads the detections of one SecOps instance. Each detection becomes an incident."""

    permissions = PERMISSIONS
    record_contracts = CONTRACTS
    retirements = load_retirements("secops")
    event_kinds = frozenset(ENTITY_FIELDS)
    page_size = 500

    def __init__(self, settings: SecOpsSettings, tools: Tools) -> None:
        """Store the dependencies. Performs no I/O."""
        super().__init__(settings, tools)
        self._client = SecOpsClient(settings, tools)

    async def check(self) -> Health:
        """Return the permissions that the service account lacks."""
        settings, now = self.settings, self.tools.clock.now()
        lacking = await find_permission_problems(
            self._client, settings.curated_rules, now, writes=settings.writes
        )
        detail = f"Tocsin can read detections from {settings.instance}"
        if settings.curated_detections and not settings.curated_rules:
            curated = await examine_curated_rules(self._client, now)
            detail = f"{detail}; {curated.detail}" if curated.detail else detail
            lacking += curated.problems
        return Health(detail=detail, problems=tuple(lacking))

    async def list_changes(self, stream: str, window: Window, token: Any, limit: int) -> Listing:
        """Return a page of the detections that were created or changed in the window.

        The API lists by creation time only: for changes, all of `changes_for` is listed.
        """
        whole = self.listed_for(stream, window)
        cursor = (
            DetectionCursor.first(EVERY_RULE, whole)
            if token is None
            else DetectionCursor.decode(token)
        )
        if self._is_removed(cursor.rule):
            raise Broken(f"the rule {cursor.rule} was removed from the settings")
        asked = partial(list_page, self._client, limit=limit)
        probed = partial(probe_page, self._client)
        cursor, found = await self.list_page(stream, cursor, asked, probed)
        if cursor.others is None:
            cursor = replace(cursor, others=await self._list_curated_rules(whole))
        following = cursor.following(found, whole)
        is_changed = partial(_changed_in, window=window)
        return self.build_listing(stream, cursor, found, following, is_changed)

    def _is_removed(self, rule: str) -> bool:
        """Return whether the operator has changed the rules since a window began."""
        settings = self.settings
        if rule == EVERY_RULE:
            return False
        named = settings.curated_rules
        return not settings.curated_detections or bool(named and rule not in named)

    async def _list_curated_rules(self, window: Window) -> tuple[str, ...]:
        """Return the curated rules to list: those of the settings, or those with detections.

        Detections are counted by their own time, which is up to a day behind their creation.
        Without the permission to count there are none, which `check` reports.
        """
        if not self.settings.curated_detections:
            return ()
        if self.settings.curated_rules:
            return union([self.settings.curated_rules])
        try:
            return await self._client.curated_rules(Window(window.start - _DAY, window.end))
        except (CredentialsRefused, Refused) as refused:
            if refused.status not in NOT_COUNTED:
                raise
            return ()

    def to_incident(self, record: Mapping[str, Any]) -> Incident:
        """Return the incident of a detection. Raises ValueError if it is invalid."""
        return build_incident(record)

    async def incident(self, external_id: str) -> Incident | None:
        """Return the current detection, or None if it does not exist."""
        record = await self._client.alert(external_id)
        return build_from_answer(record, build_incident, f"GET {GET_ALERT}")

    def events(self, entity: Entity, window: Window, limit: int) -> AsyncGenerator[SiemEvent, None]:
        """Yield the latest events that name an entity."""
        return search_events(self._client, entity, window, limit)

    async def comment(self, external_id: str, text: str, key: str) -> None:
        """Write a comment to a detection as feedback, unless one with this key exists.

        Feedback has no keys, so each comment ends with a marker of its key, which is searched for
        in all previous feedback.
        """
        found = await self._existing(external_id)
        given = [child(found, "feedbackSummary"), *children(found, "feedbackHistory")]
        if not has_marker(key, read_comments(given, "comment")):
            await self._client.update(external_id, {"comment": add_marker(text, key)})

    async def set_status(self, external_id: str, status: IncidentStatus) -> None:
        """Set the status of a detection as feedback, unless it has that status already."""
        feedback = child(await self._existing(external_id), "feedbackSummary")
        if parse_status(text(feedback, "status")) is not status:
            await self._client.update(external_id, {"status": STATUS_WORDS[status]})

    async def _existing(self, identifier: str) -> SecOpsRecord:
        """Return the current detection. Raises `Refused` if it does not exist."""
        found = await self._client.alert(identifier)
        if found is None:
            raise Refused(f"the alert {identifier} does not exist")
        return found


def _changed_in(record: dict[str, Any], window: Window) -> bool:
    """Return whether a detection changed in a window after its creation."""
    with suppress(ValueError):
        created_at, changed_at = parse_times(record)
        return changed_at > created_at and changed_at in window
    return False
