"""Channel `iris`: alerts in DFIR-IRIS.

Based on the source at https://github.com/dfir-iris/iris-web. Version 2.4 has `/alerts/*`. Later
versions also have `/api/v2`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Annotated, Any
from urllib.parse import quote

from pydantic import Field, SecretStr, StringConstraints

from tocsin import Broken, CaseChannel, Delivery, Health, Json, Observable, Refused, Severity, Tools
from tocsin_connectors.responses import expect_object, expect_objects
from tocsin_connectors.soar.iris.iocs import OTHER, build_iocs, list_values, select_kept
from tocsin_connectors.soar.iris.lookups import LookupKind, NumberLookup
from tocsin_connectors.soar.iris.permissions import find_problems
from tocsin_connectors.soar.iris.responses import (
    classify_refusal,
    get_alert_id,
    get_status,
    is_missing,
    is_of_other_format,
    keep_owner,
    unwrap_data,
)

_NEW_STATUS = "New"
_CLOSED_STATUSES = ("closed", "merged", "escalated")
_PAGE_SIZE = 100
_MAX_PAGES = 50

ShortName = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class IrisSettings(CaseChannel.Settings):
    """Settings of an `iris` destination."""

    template: str = Field(default="iris", description="Receiver whose templates render the alert.")
    api_key: SecretStr = Field(description="API key of an IRIS user.")
    customer: Annotated[int, Field(ge=1)] | ShortName = Field(
        description="Customer for whom Tocsin creates alerts, by name or number."
    )
    closed_status: ShortName = Field(
        default="Closed", description="Status that an alert gets when Tocsin closes it."
    )
    tlp: ShortName = Field(default="amber", description="TLP that new IOCs get.")


class Iris(CaseChannel[IrisSettings]):
    """Creates alerts, and updates their IOCs and comments."""

    settling: timedelta | None = timedelta(0)

    def __init__(self, settings: Any, tools: Tools) -> None:
        """Store the settings and tools; perform no I/O."""
        super().__init__(settings, tools)
        self.names = NumberLookup(self.ask)

    def authorization(self) -> Mapping[str, str]:
        """Return the API key header."""
        return {"Authorization": f"Bearer {self.settings.api_key.get_secret_value()}"}

    async def ask(self, method: str, path: str, **options: Any) -> Json:
        """Return the `data` of a successful response."""
        try:
            answer = await super().ask(method, path, **options)
        except Refused as refused:
            raise classify_refusal(refused) from refused.__cause__
        return unwrap_data(answer, f"{method} {path}")

    async def check(self) -> Health:
        """Report missing permissions, and names that do not exist in IRIS."""
        customer = self.settings.customer
        found = find_problems(self.ask, self.names, customer, self._list_required())
        detail = f"DFIR-IRIS responds; Tocsin creates alerts for the customer {customer}"
        return Health(detail=detail, problems=tuple([problem async for problem in found]))

    async def find(self, key: str) -> str | None:
        """Return the ID of the alert with this reference, or None.

        Tocsin compares the references itself, because IRIS also returns alerts whose references
        only contain the key, and ignores parameters that it does not know.
        """
        page: Json = 1
        for _ in range(_MAX_PAGES):
            query = {"source_reference": key, "page": page, "per_page": _PAGE_SIZE}
            found = expect_object(await self.ask("GET", "/alerts/filter", query=query), "IRIS")
            for alert in expect_objects(found.get("alerts") or (), "IRIS"):
                if alert.get("alert_source_ref") == key:
                    return get_alert_id(alert)
            if (page := found.get("next_page")) is None:
                return None
        raise Broken(
            f"IRIS found more than {_MAX_PAGES * _PAGE_SIZE:,} alerts for the reference {key!r}; "
            "delete or merge alerts whose references contain this text"
        )

    def render_body(self, delivery: Delivery) -> dict[str, Any]:
        """Return the alert with the name of its severity, which is resolved later."""
        return super().render_body(delivery) | {"alert_severity_id": delivery.event.severity.value}

    async def create(
        self, key: str, body: dict[str, Any], observables: Sequence[Observable]
    ) -> tuple[str, bool]:
        """Create an alert with its IOCs."""
        alert = {
            **body,
            "alert_iocs": [],
            "alert_source_ref": key,
            "alert_severity_id": await self.names.number(
                LookupKind.SEVERITY, body["alert_severity_id"]
            ),
            "alert_status_id": await self.names.number(LookupKind.STATUS, _NEW_STATUS),
            "alert_customer_id": await self.names.customer(self.settings.customer),
        }
        try:
            made = await self._send("/alerts/add", alert, "alert_iocs", observables)
        except Refused:
            # Failures after the alert was stored are reported the same way
            if found := await self.find(key):
                return found, False
            raise
        return get_alert_id(made), True

    async def is_open(self, identifier: str) -> bool | None:
        """Return whether the alert is neither closed nor part of a case."""
        try:
            status = get_status(await self._alert(identifier))
        except Refused as refused:
            if is_missing(refused):
                return None
            raise
        return status not in (*_CLOSED_STATUSES, self.settings.closed_status.casefold())

    async def add_observables(self, identifier: str, observables: Sequence[Observable]) -> int:
        """Add IOCs for the values that the alert lacks."""
        if not observables:
            return 0
        alert = await self._alert(identifier)
        known = list_values(alert)
        unknown = [observable for observable in observables if observable.value not in known]
        if not unknown:
            return 0
        # `iocs` replaces the list; `alert_iocs`, the name elsewhere, is ignored
        change = {
            "iocs": [select_kept(ioc) for ioc in alert.get("iocs") or ()],
            **keep_owner(alert),
        }
        changed = await self._send(f"/alerts/update/{quote(identifier)}", change, "iocs", unknown)
        added = len(list_values(changed) - known)
        if added < len(unknown):
            facts = {"alert": identifier, "accepted": added, "requested": len(unknown)}
            self.tools.log.warning("IOCs rejected", **facts)
        return added

    async def list_notes(self, identifier: str) -> Sequence[str]:
        """Return the comments of the alert."""
        found = await self.ask("GET", f"/alerts/{quote(identifier)}/comments/list")
        comments = expect_objects(found if isinstance(found, list) else (), "IRIS")
        return [str(comment.get("comment_text")) for comment in comments]

    async def add_note(self, identifier: str, title: str, text: str) -> None:
        """Add a comment to the alert."""
        comment = {"comment_text": f"**{title}**\n\n{text}"}
        await self.ask("POST", f"/alerts/{quote(identifier)}/comments/add", json=comment)

    async def close(self, identifier: str, reason: str) -> None:
        """Set the closed status of the alert, and add the reason to its note."""
        alert = await self._alert(identifier)
        status = await self.names.number(LookupKind.STATUS, self.settings.closed_status)
        note = "\n\n".join(filter(None, (alert.get("alert_note"), reason)))
        change = {"alert_status_id": status, "alert_note": note, **keep_owner(alert)}
        await self.ask("POST", f"/alerts/update/{quote(identifier)}", json=change)

    def link(self, identifier: str) -> str:
        """Return the URL of the alert."""
        return f"{self.settings.url}/alerts?alert_ids={quote(identifier)}"

    async def _alert(self, identifier: str) -> dict[str, Any]:
        return expect_object(await self.ask("GET", f"/alerts/{quote(identifier)}"), "IRIS")

    async def _send(
        self, path: str, alert: Mapping[str, Any], member: str, observables: Sequence[Observable]
    ) -> dict[str, Any]:
        """Send an alert with additional IOCs, and return the alert in the response.

        If a value does not match the pattern for its type, all IOCs get the type `other`.
        """
        existing, names, tlp = alert.get(member, ()), self.names, self.settings.tlp
        new = await build_iocs(observables, names, tlp)
        try:
            return expect_object(
                await self.ask("POST", path, json={**alert, member: [*existing, *new]}), "IRIS"
            )
        except Refused as refused:
            if not is_of_other_format(refused):
                raise
        new = await build_iocs(observables, names, tlp, typed=False)
        return expect_object(
            await self.ask("POST", path, json={**alert, member: [*existing, *new]}), "IRIS"
        )

    def _list_required(self) -> Iterator[tuple[LookupKind, str]]:
        """Yield the names that must exist in IRIS."""
        yield from ((LookupKind.SEVERITY, severity.value) for severity in Severity)
        yield from (
            (LookupKind.STATUS, _NEW_STATUS),
            (LookupKind.STATUS, self.settings.closed_status),
        )
        yield from ((LookupKind.IOC_TYPE, OTHER), (LookupKind.TLP, self.settings.tlp))
