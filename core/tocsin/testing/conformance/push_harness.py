"""Test harness for providers that receive pushed requests."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from multidict import CIMultiDict, CIMultiDictProxy

from tocsin.errors import CredentialsRefused, Refused
from tocsin.hookspecs import PushRequest
from tocsin.model import Received, Rejected
from tocsin.testing.conformance.harness import Conformance, Harness
from tocsin.testing.siem import Case

TOKEN = "conformance-token-of-a-sender"  # noqa: S105 - of a sender that does not exist
SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()


def combine_batches(batches: Iterable[Received]) -> Received:
    """Return the contents of all batches of a request."""
    kept = list(batches)
    return Received(
        incidents=tuple(incident for batch in kept for incident in batch.incidents),
        rejected=tuple(record for batch in kept for record in batch.rejected),
        further_rejected=sum(batch.further_rejected for batch in kept),
        records=sum(batch.records for batch in kept),
    )


class PushConformance(Conformance):
    """Base of the rules for providers that receive pushed requests."""

    batches: ClassVar[bool] = True
    """Whether a request can contain several records."""

    @abstractmethod
    def record(self, case: Case) -> dict[str, Any]:
        """Return a case as a record in the sender's format."""

    def body(self, *records: dict[str, Any]) -> bytes:
        """Return the body of a request with these records; by default, a JSON list."""
        return json.dumps(records).encode()

    def settings(self) -> Mapping[str, Any]:
        """Return the provider's settings: a token and a signing secret."""
        return {"token": TOKEN, "secret": SECRET}

    def harness(self) -> PushHarness:
        """Return a harness for the provider."""
        return PushHarness(self)


class PushHarness(Harness):
    """One test run; versions are queued, and sent by `arrive`."""

    def __init__(self, suite: PushConformance) -> None:
        super().__init__(suite)
        self._suite = suite
        self._waiting: list[Case] = []

    def settings(self) -> Mapping[str, Any]:
        """Return the settings of the provider."""
        return self._suite.settings()

    def render(self, case: Case) -> dict[str, Any]:
        """Return a case as a record in the sender's format."""
        return self._suite.record(case)

    def keep(self, case: Case) -> Case:
        """Queue a version of an incident for sending."""
        kept = super().keep(case)
        self._waiting.append(kept)
        return kept

    async def arrive(self) -> None:
        """Send each queued version in a separate request.

        A refused request counts as rejected, because the sender receives an error.
        """
        while self._waiting:
            body = self._suite.body(self.show(self._waiting.pop(0)))
            try:
                self.store.add(await self.receive(body))
            except Refused as error:
                rejected = Rejected(source="push", location="body", reason=str(error), content=body)
                self.store.add(Received(rejected=(rejected,)))

    async def receive(self, body: bytes, **fields: str) -> Received:
        """Return what the provider makes of a request; with a token, unless other headers are
        given.

        Header names are written with underscores.
        """
        given = {name.replace("_", "-"): value for name, value in fields.items()}
        shown = CIMultiDict(given or {"Authorization": f"Bearer {TOKEN}"})
        headers = CIMultiDictProxy(shown)
        if self.provider.is_authentic(headers) is False:
            raise CredentialsRefused("is_authentic: the headers show that it is not")
        request = PushRequest(headers=headers, body=body)
        return combine_batches([batch async for batch in self.provider.receive(request)])

    def signed(self, body: bytes) -> dict[str, str]:
        """Return the headers of a body that is signed now, by Standard Webhooks 1.0.0."""
        at = str(int(self.clock.now().timestamp()))
        content = f"msg_1.{at}.".encode() + body
        key = base64.b64decode(SECRET.removeprefix("whsec_"))
        signature = base64.b64encode(hmac.digest(key, content, hashlib.sha256)).decode()
        return {
            "webhook_id": "msg_1",
            "webhook_timestamp": at,
            "webhook_signature": f"v1,{signature}",
        }
