"""Rules for reading the statuses of objects."""

from __future__ import annotations

from typing import Any

from multidict import CIMultiDict
from pydantic import SecretStr

from tocsin.channels import ObjectChannel
from tocsin.errors import CredentialsRefused, PluginFailure
from tocsin.hookspecs import PushRequest
from tocsin.testing.conformance.object_channel_harness import (
    ObjectChannelHarness,
    ObjectChannelSuite,
)
from tocsin.testing.conformance.rules import RuleViolation, expect, rule
from tocsin.testing.faults import Fault


class RemoteStatusRules(ObjectChannelSuite):
    """Rules for channels that implement `read_statuses`."""

    @rule
    async def test_statuses_are_reported(self) -> None:
        """`read_statuses` reports open and closed objects and leaves out deleted ones.

        If the channel leaves out an object, Tocsin assumes that someone deleted the object and that
        its incident no longer has a ticket.
        """
        async with self.harness() as harness:
            if not _get_channel(harness).status_batch:
                return
            for number in (1, 2, 3):
                await harness.bring(harness.alert(number=number))
            opened, closed, gone = (remote.id for remote in harness.objects)
            await _get_channel(harness).close(closed, "Closed by a test.")
            harness.simulator.remove(gone)
            found = await _get_channel(harness).read_statuses([opened, closed, gone])
            expect(set(found) == {opened, closed}, f"statuses of {sorted(found)}")
            expect(found[opened].is_open, f"the open object: {found[opened]!r}")
            expect(not found[closed].is_open, f"the closed object: {found[closed]!r}")
            same = found[opened].status == found[closed].status
            expect(not same, f"both have the status {found[opened].status!r}")

    @rule
    async def test_closed_statuses_are_listed(self) -> None:
        """`list_closed_statuses` names the statuses that closed objects can have.

        `tocsin check` compares these statuses with the operator's `resolutions`.
        """
        async with self.harness() as harness:
            if not _get_channel(harness).status_batch:
                return
            await harness.bring(harness.alert())
            [remote] = harness.objects
            await _get_channel(harness).close(remote.id, "Closed by a test.")
            found = (await _get_channel(harness).read_statuses([remote.id]))[remote.id]
            listed = await _get_channel(harness).list_closed_statuses()
            expect(found.status in listed, f"{found.status!r} is not among {listed!r}")

    @rule
    async def test_failures_report_no_status(self) -> None:
        """If the receiver fails, `read_statuses` raises an exception and never returns only some of
        the objects.

        Otherwise, an outage would look like deleted objects.
        """
        async with self.harness() as harness:
            if not _get_channel(harness).status_batch:
                return
            await harness.bring(harness.alert())
            [remote] = harness.objects
            for fault in (Fault.UNAVAILABLE, Fault.UNAUTHORIZED, Fault.UNEXPECTED):
                harness.simulator.fail(fault)
                expect(await _raises(harness, remote.id), f"it returned a result after {fault}")
                harness.simulator.heal()

    @rule
    async def test_webhooks_without_the_secret_are_refused(self) -> None:
        """`parse_webhook` raises `CredentialsRefused` for a webhook without the secret.

        Anyone can send a request to the endpoint, with any headers and any body.
        """
        async with self.harness() as harness:
            channel = _get_channel(harness)
            secret = SecretStr("a-secret-of-the-receiver")
            settings = channel.settings.model_copy(update={"webhook_secret": secret})
            for headers in ({}, dict.fromkeys(_AUTHENTICATION, "sha256=00")):
                for body in (
                    b"",
                    b"\xff",
                    b"[" * 10_000,
                    b'{"issue": {"number": 1, "key": "A-1"}}',
                ):
                    request = PushRequest(headers=CIMultiDict(headers), body=body)
                    try:
                        found = channel.parse_webhook(settings, request, channel.tools.clock.now())
                    except NotImplementedError:
                        return
                    except CredentialsRefused:
                        continue
                    expect(False, f"it returned {found!r} for {headers} and {body[:50]!r}")


_AUTHENTICATION = (
    *("Authorization", "X-Hub-Signature", "X-Hub-Signature-256", "X-Gitlab-Token"),
    *("X-Zendesk-Webhook-Signature", "X-Zendesk-Webhook-Signature-Timestamp"),
    *("webhook-id", "webhook-timestamp", "webhook-signature"),
)
"""Header fields with which known receivers authenticate their webhooks."""


def _get_channel(harness: ObjectChannelHarness) -> ObjectChannel[Any]:
    channel = harness.channel
    if not isinstance(channel, ObjectChannel):
        raise RuleViolation(f"{type(channel).__name__} is not an `ObjectChannel`")
    return channel


async def _raises(harness: ObjectChannelHarness, identifier: str) -> bool:
    try:
        await _get_channel(harness).read_statuses([identifier])
    except PluginFailure:
        return True
    return False
