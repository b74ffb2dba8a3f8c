"""Broken providers of pushed requests."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime

from broken import Broken

from tocsin import (
    CredentialsRefused,
    Entity,
    EntityKind,
    Health,
    Incident,
    IncidentStatus,
    PushProvider,
    Received,
    Refused,
    Rejected,
    Severity,
    decode_webhook_secret,
    is_recent_time,
    require_standard_signature,
)
from tocsin.testing.conformance import PushProviderConformance


class Sent(PushProvider):
    """Takes JSON lists of what the suite's `record` makes."""

    async def check(self):
        return Health(detail="it waits")

    def unpack(self, body, received_at):
        try:
            records = json.loads(body)
        except (ValueError, RecursionError):
            raise Refused("the body is not JSON") from None
        if not isinstance(records, list):
            raise Refused("the body is not a list")
        yield self.received(records)

    def received(self, records):
        incidents, rejected = [], []
        for place, record in enumerate(records):
            try:
                incidents.append(incident_of(record))
            except (AttributeError, KeyError, TypeError, ValueError) as error:
                content = json.dumps(record).encode()
                reason = f"the record is not whole: {error!r}"
                location = f"record {place}"
                rejected.append(
                    Rejected(source="body", location=location, reason=reason, content=content)
                )
        return Received(incidents=tuple(incidents), rejected=tuple(rejected), records=len(records))


def incident_of(record):
    severity = _word(Severity, record.get("severity"))
    return Incident(
        external_id=_text(record["id"]),
        title=_text(record.get("title") or ""),
        severity=severity or Severity.MEDIUM,
        severity_assumed=severity is None,
        raw_severity=_text(record.get("severity") or "") or None,
        status=_word(IncidentStatus, record.get("status")) or IncidentStatus.NEW,
        raw_status=_text(record.get("status") or "") or None,
        merged_into=_text(record.get("merged_into") or "") or None,
        occurred_at=_moment(record["created_at"]),
        changed_at=_moment(record["changed_at"]),
        entities=tuple(
            Entity(EntityKind.IP, _text(address)) for address in record.get("addresses") or ()
        ),
    )


def _text(value):
    if not isinstance(value, str):
        raise TypeError("not a text")
    return value


def _word(words, text):
    return next((word for word in words if word.casefold() == str(text).casefold()), None)


def _moment(text):
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


class SentConformance(PushProviderConformance):
    provider = Sent

    def record(self, case):
        return {
            "id": case.id,
            "title": case.title,
            "severity": str(case.severity),
            "status": str(case.status),
            "merged_into": case.merged_into,
            "created_at": case.created_at.isoformat(),
            "changed_at": case.changed_at.isoformat(),
            "addresses": [entity.value for entity in case.entities],
        }


PUSHES = Broken(SentConformance)
breaks = PUSHES.breaks


class Doors(Sent):
    """Opens otherwise: override `opens`."""

    def opens(self, request):
        return False

    def shuts(self, request):
        return False

    def is_authentic(self, headers):
        return None

    async def receive(self, request):
        if self.shuts(request):
            raise CredentialsRefused("not so")
        if self.opens(request):
            [received] = self.unpack(request.body, self.tools.clock.now())
            yield received
            return
        async for received in super().receive(request):
            yield received


@breaks("test_a_valid_token_is_accepted")
class KnowsNoPasswords(Doors):
    def shuts(self, request):
        return request.headers.get("Authorization", "").startswith("Basic")


@breaks("test_a_wrong_token_is_refused")
class ComparesTheBeginning(Doors):
    def opens(self, request):
        token = self.settings.token.get_secret_value()
        shown = request.headers.get("Authorization", "").removeprefix("Bearer ")
        return len(shown) > len(token) and shown.startswith(token)


@breaks("test_a_valid_signature_is_accepted")
class KnowsNoSignatures(Doors):
    def shuts(self, request):
        return "webhook-signature" in request.headers


@breaks("test_a_changed_body_is_refused")
class TrustsASignatureOfAnything(Doors):
    def opens(self, request):
        return is_recent_time(request.headers.get("webhook-timestamp", ""), self.tools.clock.now())


@breaks("test_an_old_signature_is_refused")
class TakesOldSignatures(Doors):
    def opens(self, request):
        key = decode_webhook_secret(self.settings.secret.get_secret_value())
        signed_at = int(request.headers.get("webhook-timestamp", "0"))
        with suppress(CredentialsRefused):
            require_standard_signature(request, key, datetime.fromtimestamp(signed_at, UTC))
            return True
        return False


@breaks("test_an_unreadable_body_is_refused")
class TakesAnythingForNothing(Sent):
    def unpack(self, body, received_at):
        try:
            yield from super().unpack(body, received_at)
        except Refused:
            yield Received()


@breaks("test_a_repeated_request_is_one_incident")
class CountsRequests(Sent):
    def __init__(self, settings, tools):
        super().__init__(settings, tools)
        self._bodies = Counter()

    def unpack(self, body, received_at):
        [received] = super().unpack(body, received_at)
        suffix = "+" * self._bodies[body]
        self._bodies[body] += 1
        renamed = (
            replace(incident, external_id=incident.external_id + suffix)
            for incident in received.incidents
        )
        yield replace(received, incidents=tuple(renamed))


@breaks("test_a_malformed_record_is_rejected_alone")
class RefusesThemAll(Sent):
    def received(self, records):
        received = super().received(records)
        if received.rejected and received.incidents:
            raise Refused("one of the records is not whole")
        return received


@breaks("test_no_secret_is_exposed")
class TellsWhatItWasShown(Sent):
    def is_authentic(self, headers):
        return None

    async def receive(self, request):
        try:
            async for received in super().receive(request):
                yield received
        except CredentialsRefused as error:
            raise CredentialsRefused(f"{error}: {request.headers.get('Authorization')}") from None


@breaks("test_check_without_problems")
class HasNothingYet(Sent):
    async def check(self):
        return Health(detail="", problems=("nothing was sent yet",))


class SentNumbers(Sent):
    """Takes times in seconds since 1970; what is no such time is rejected."""

    def received(self, records):
        return super().received([_in_words(record) for record in records])


def _in_words(record):
    if not isinstance(record, dict):
        return record
    names = ("created_at", "changed_at")
    times = {name: _iso(record[name]) for name in names if name in record}
    return {**record, **times}


def _iso(value):
    with suppress(TypeError, ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(value, UTC).isoformat()
    return None


class NumbersConformance(SentConformance):
    provider = SentNumbers

    def record(self, case):
        times = {"created_at": case.created_at, "changed_at": case.changed_at}
        return super().record(case) | {name: moment.timestamp() for name, moment in times.items()}


NUMBERS = Broken(NumbersConformance)


@NUMBERS.breaks("test_odd_numeric_times_are_handled")
class PassesOverTheFarFuture(SentNumbers):
    def received(self, records):
        return super().received([record for record in records if not _is_far(record)])


def _is_far(record):
    at = record.get("created_at") if isinstance(record, dict) else None
    return isinstance(at, int) and at > 2**33
