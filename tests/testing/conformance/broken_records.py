"""Providers with broken records and settings."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import ClassVar

from broken import Answers, Incidents, Lists, Records, breaks
from pydantic import ConfigDict, Field
from tocsin_example.provider import ExampleProvider

from tocsin import IncidentStatus, RecordContract, Severity

WORDS = {"info", "low", "medium", "high", "critical"}
STATUSES = {"open", "in_progress", "closed", "merged"}
MEMBERS = {
    *("id", "number", "title", "description", "severity", "status", "merged_into"),
    *("created_at", "changed_at", "entities"),
}


# what an operator sets


@breaks("test_an_unknown_setting_is_refused")
class TakesAnySetting(ExampleProvider):
    class Settings(ExampleProvider.Settings):
        model_config = ConfigDict(extra="ignore")


@breaks("test_every_setting_has_a_description")
class ExplainsNothing(ExampleProvider):
    class Settings(ExampleProvider.Settings):
        colour: str = "red"


@breaks("test_secrets_are_secret")
class HasAPlainToken(ExampleProvider):
    class Settings(ExampleProvider.Settings):
        api_token: str = Field(default="", description="The token.")


@breaks("test_secrets_are_not_printed")
class PrintsItsSecret(ExampleProvider):
    def __repr__(self) -> str:
        return f"PrintsItsSecret({self.settings.client_secret.get_secret_value()})"


@breaks("test_the_constructor_does_no_io")
class ReadsAFile(ExampleProvider):
    def __init__(self, settings, tools):
        Path(__file__).read_text()
        super().__init__(settings, tools)


@breaks("test_stream_names_are_distinct_and_constant")
class NamesAStreamTwice(ExampleProvider):
    def streams(self):
        return ("changed", "changed")


@breaks("test_permissions_are_named")
class NamesNoPermission(ExampleProvider):
    permissions = ()


# severity and status


@breaks("test_each_severity_is_kept")
class KnowsNoCritical(Incidents):
    def make(self, incident, record):
        critical = incident.severity is Severity.CRITICAL
        return replace(incident, severity=Severity.HIGH) if critical else incident


@breaks("test_severities_are_known_in_any_case")
class KnowsSmallSeverities(Incidents):
    def make(self, incident, record):
        known = str(record.get("severity")) in WORDS
        return incident if known else replace(incident, severity=Severity.MEDIUM)


@breaks("test_an_unknown_severity_becomes_medium")
class TakesTheUnknownForHarmless(Incidents):
    def make(self, incident, record):
        return replace(incident, severity=Severity.LOW) if incident.severity_assumed else incident


@breaks("test_an_unknown_severity_becomes_medium")
class IsSureOfTheUnknown(Incidents):
    def make(self, incident, record):
        return replace(incident, severity_assumed=False)


@breaks("test_the_vendors_own_severity_is_kept")
class ForgetsTheVendorsWord(Incidents):
    def make(self, incident, record):
        return replace(incident, raw_severity=str(incident.severity.rank))


@breaks("test_each_status_is_kept", "test_an_unchanged_status_is_not_written")
class KnowsNoActive(Incidents):
    def make(self, incident, record):
        active = incident.status is IncidentStatus.ACTIVE
        return replace(incident, status=IncidentStatus.NEW) if active else incident


@breaks("test_statuses_are_known_in_any_case")
class KnowsSmallStatuses(Incidents):
    def make(self, incident, record):
        known = str(record.get("status")) in STATUSES
        return incident if known else replace(incident, status=IncidentStatus.NEW)


@breaks("test_an_incident_with_an_unknown_status_is_read")
class RejectsUnknownStatuses(Records):
    def see(self, record):
        word = record.get("status")
        if isinstance(word, str) and word.lower() not in STATUSES:
            raise ValueError("an unknown status")
        return record


@breaks("test_a_merged_incident_names_its_target")
class ForgetsWhereItWent(Incidents):
    def make(self, incident, record):
        return replace(incident, merged_into=None)


# identity, times, entities


@breaks("test_the_start_time_is_the_siems_own")
class ForgetsTheBeginning(Incidents):
    def make(self, incident, record):
        earliest = incident.changed_at - timedelta(minutes=30)
        return replace(incident, occurred_at=max(incident.occurred_at, earliest))


@breaks("test_the_start_time_is_constant")
class BeginsAnewWithEachEntity(Incidents):
    def make(self, incident, record):
        more = len(incident.entities) > 1
        return replace(incident, occurred_at=incident.changed_at) if more else incident


@breaks("test_entities_are_read", "test_declared_fields_are_filled")
class ReadsEntitiesLater(ExampleProvider):
    async def complete(self, incident, record):
        return replace(incident, entities=())


@breaks("test_an_incident_keeps_its_id")
class CountsEntitiesInItsId(Incidents):
    def make(self, incident, record):
        count = len(incident.entities)
        name = incident.external_id + "+" * (count - 1)
        return replace(incident, external_id=name)


@breaks("test_similar_incidents_stay_separate")
class GoesByTheTitle(Incidents):
    def __init__(self, settings, tools):
        super().__init__(settings, tools)
        self._known = {}

    def make(self, incident, record):
        key = incident.title, incident.occurred_at
        if not incident.title:
            return incident
        return replace(incident, external_id=self._known.setdefault(key, incident.external_id))


@breaks("test_a_version_has_the_siems_time_of_change")
class StampsVersionsItself(Incidents):
    def make(self, incident, record):
        return replace(incident, changed_at=self.tools.clock.now())


@breaks("test_a_version_has_the_siems_time_of_change")
class SaysNoTimeOfChange(Incidents):
    def make(self, incident, record):
        return replace(incident, changed_at=None)


# what stands in a record


@breaks("test_hostile_text_is_read")
class RejectsNul(Records):
    def see(self, record):
        if "\0" in str(record.get("title")):
            raise ValueError("NUL in the title")
        return record


@breaks("test_long_text_is_read")
class RejectsLongTitles(Records):
    def see(self, record):
        if len(str(record.get("title"))) > 50_000:
            raise ValueError("the title is too long")
        return record


@breaks("test_lone_surrogates_do_not_affect_other_incidents")
class DropsThePageOfHalfACharacter(Answers):
    def take(self, response):
        if not re.search(rb"\\ud83d(?!\\u)", response.body):
            return response
        return replace(response, body=b'{"cases": [], "next_page_token": null}')


@breaks("test_unknown_members_are_ignored")
class RejectsUnknownMembers(Records):
    def see(self, record):
        if unknown := record.keys() - MEMBERS:
            raise ValueError(f"unknown: {unknown}")
        return record


@breaks("test_missing_members_are_accepted")
class NeedsATitle(Records):
    def see(self, record):
        if "title" not in record:
            raise ValueError("no title")
        return record


@breaks("test_null_members_are_accepted")
class NeedsMoreThanNull(Records):
    def see(self, record):
        if "description" in record and record["description"] is None:
            raise ValueError("no description")
        return record


@breaks("test_members_of_another_type_do_not_stop_the_feed")
class TakesAnyTitle(Incidents):
    def to_incident(self, record):
        title = record.get("title", "")
        incident = super().to_incident({**record, "title": ""} if title else record)
        return replace(incident, title=title or "")


@breaks("test_a_malformed_record_is_rejected")
class DropsWhatItCannotRead(ExampleProvider):
    def to_incident(self, record):
        with suppress(ValueError):
            return super().to_incident(record)
        return None


@breaks("test_fractions_of_any_length_are_read")
class KnowsSixDigits(Records):
    def see(self, record):
        if re.search(r"\.\d{7}", str(record.get("created_at"))):
            raise ValueError("too many digits")
        return record


@breaks("test_times_of_other_zones_are_read")
class KnowsNoZones(Records):
    def see(self, record):
        text = record.get("created_at")
        if not isinstance(text, str):
            return record
        return {**record, "created_at": re.sub(r"[+-]\d\d:\d\d$", "Z", text)}


@breaks("test_times_without_a_zone_are_never_local")
class LivesInLocalTime(Records):
    def see(self, record):
        text = record.get("created_at")
        with suppress(TypeError, ValueError):
            moment = datetime.fromisoformat(text)
            return {**record, "created_at": moment.astimezone(UTC).isoformat()}
        return record


# contracts of records


@breaks("test_each_required_field_is_in_every_record")
class DeclaresAnotherType(ExampleProvider):
    record_contracts: ClassVar = {"changed": RecordContract(required={"severity": "number"})}


@breaks("test_the_mapping_needs_each_required_field")
class RequiresAnUnusedField(Lists):
    record_contracts: ClassVar = {"changed": RecordContract(required={"region": "string"})}

    async def listed(self, ask, window, token):
        found = await ask()
        records = [{**record, "region": "eu"} for record in found.records]
        return replace(found, records=records)
