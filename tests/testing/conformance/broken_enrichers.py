"""Broken variants of an enricher, with the rules that each one breaks."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pytest
from aiohttp import web
from pydantic import Field, SecretStr

from tocsin import (
    Api,
    ApiSettings,
    Broken,
    CredentialsRefused,
    Disposition,
    Enricher,
    Enrichment,
    Entity,
    EntityKind,
    Health,
    PluginFailure,
    Refused,
    Tools,
    TryLater,
)
from tocsin.testing.conformance import EnricherConformance

KNOWN = {"203.0.113.9": "scanner", "203.0.113.10": "botnet"}
MOST = 200


class Reputation(Enricher):
    """What a source calls an address."""

    class Settings(Enricher.Settings, ApiSettings):
        api_key: SecretStr = Field(description="The key.")

    name = "reputation"
    kinds = frozenset({EntityKind.IP, EntityKind.DOMAIN})
    online = True
    batch = 3

    def __init__(self, settings: Settings, tools: Tools) -> None:
        super().__init__(settings, tools)
        self.api = Api(tools, settings)

    @property
    def headers(self) -> dict[str, str]:
        return {"Key": self.settings.api_key.get_secret_value()}

    async def check(self) -> Health:
        await self.api.request("GET", "/status", headers=self.headers)
        return Health(detail="it answers")

    async def enrich(self, entities: Sequence[Entity]) -> Sequence[Enrichment]:
        said = [(entity, await self.look_up(entity.value)) for entity in entities]
        return [self.told(entity, answer) for entity, answer in said if answer is not None]

    def path(self, value: str) -> str:
        return f"/v1/{quote(value.replace('.', '-'), safe='')}"

    async def look_up(self, value: str) -> dict[str, Any] | None:
        try:
            answer = await self.api.request("GET", self.path(value), headers=self.headers)
        except Refused as refused:
            if refused.status == 404:
                return None
            raise
        return self.read(answer.json)

    def read(self, content: Any) -> dict[str, Any] | None:
        match content:
            case {"verdict": str()}:
                return content
        raise Broken("it answered without `verdict`")

    def told(self, entity: Entity, answer: dict[str, Any]) -> Enrichment:
        return Enrichment(
            entity=entity,
            summary=f"It is called {answer['verdict'][:MOST]}",
            disposition=Disposition.SUSPICIOUS,
        )


class ReputationConformance(EnricherConformance):
    enricher = Reputation
    known = tuple(Entity(EntityKind.IP, value) for value in KNOWN)
    unknown = (Entity(EntityKind.IP, "198.51.100.7"),)

    def settings(self, url):
        return {"url": url, "api_key": "a secret"}

    def routes(self):
        return [web.get("/status", self.status), web.get("/v1/{value}", self.answer)]

    async def status(self, _):
        return web.json_response({"status": "ok"})

    async def answer(self, request):
        value = request.match_info["value"].replace("-", ".")
        if value not in KNOWN:
            raise web.HTTPNotFound
        return web.json_response({"verdict": KNOWN[value], "seen": 3})


TABLE: list[tuple[frozenset[str], type[Enricher]]] = []


def breaks(*rules: str) -> Callable[[type[Enricher]], type[Enricher]]:
    """Enter an enricher: it breaks these rules and keeps all others."""

    def enter(kind: type[Enricher]) -> type[Enricher]:
        TABLE.append((frozenset(rules), kind))
        return kind

    return enter


def params() -> list[Any]:
    return [pytest.param(rules, kind, id=kind.__name__) for rules, kind in TABLE]


@breaks("test_name_kinds_and_batch_are_declared")
class Standing(Reputation):
    standing = True


@breaks("test_every_setting_has_a_description")
class Undescribed(Reputation):
    class Settings(Reputation.Settings):
        depth: int = 1


@breaks("test_secrets_are_secret")
class Printed(Reputation):
    def __repr__(self):
        return f"Printed({self.headers})"


@breaks("test_the_constructor_does_no_io")
class Eager(Reputation):
    def __init__(self, settings, tools):
        super().__init__(settings, tools)
        Path(__file__).read_text()


@breaks("test_known_entities_have_a_summary")
class Silent(Reputation):
    def told(self, entity, answer):
        return replace(super().told(entity, answer), summary="")


@breaks(
    "test_unknown_entities_have_no_enrichment",
    "test_not_found_means_no_enrichment",
    "test_results_are_in_the_requested_order",
    "test_results_do_not_depend_on_the_batch",
)
class Misses(Reputation):
    """Takes 404 for a failure."""

    async def look_up(self, value):
        answer = await self.api.request("GET", self.path(value), headers=self.headers)
        return self.read(answer.json)


@breaks("test_unknown_entities_have_no_enrichment")
class Chatty(Reputation):
    async def look_up(self, value):
        return await super().look_up(value) or {"verdict": "unknown"}


@breaks("test_results_are_in_the_requested_order")
class Sorted(Reputation):
    async def enrich(self, entities):
        return await super().enrich(sorted(entities, key=lambda entity: entity.value, reverse=True))


@breaks("test_the_same_request_has_the_same_result")
class Counted(Reputation):
    starts = count()

    async def start(self):
        self.number = next(self.starts)

    def told(self, entity, answer):
        return replace(super().told(entity, answer), facts={"start": self.number})


@breaks("test_results_do_not_depend_on_the_batch")
class Comparing(Reputation):
    async def enrich(self, entities):
        said = await super().enrich(entities)
        return [replace(enrichment, facts={"among": len(entities)}) for enrichment in said]


@breaks("test_results_are_within_limits")
class Endless(Reputation):
    def told(self, entity, answer):
        return replace(super().told(entity, answer), summary=answer["verdict"])


@breaks("test_hostile_values_are_data")
class Unquoted(Reputation):
    def path(self, value):
        return unquote(super().path(value))


@breaks("test_a_member_of_another_type_is_handled")
class Trusting(Reputation):
    def told(self, entity, answer):
        facts = {"seen": answer["seen"] + 1}
        return replace(super().told(entity, answer), facts=facts)


class Failing(Reputation):
    """Takes one failure for something else: override `failed`."""

    async def look_up(self, value):
        try:
            return await super().look_up(value)
        except PluginFailure as error:
            return self.failed(error)

    def failed(self, error):
        raise error


@breaks("test_throttling_is_waited_out")
class Impatient(Failing):
    def failed(self, error):
        if isinstance(error, TryLater):
            raise TryLater(str(error)) from error
        raise error


@breaks("test_refused_credentials_raise")
class Vague(Failing):
    def failed(self, error):
        if isinstance(error, CredentialsRefused):
            raise Refused(str(error)) from error
        raise error


@breaks("test_an_error_response_raises")
class Calm(Failing):
    def failed(self, error):
        if isinstance(error, Broken) and "500" in str(error):
            return
        raise error


@breaks("test_a_body_that_is_not_json_raises")
class Lenient(Failing):
    def failed(self, error):
        if isinstance(error, Broken) and "not JSON" in str(error):
            return
        raise error


@breaks("test_json_without_expected_members_raises")
class Undemanding(Reputation):
    def read(self, content):
        with suppress(Broken):
            return super().read(content)
        if content == {}:
            return None
        raise Broken(json.dumps(content))


@breaks("test_an_error_with_status_200_raises")
class Forgiving(Reputation):
    """Takes an error with status 200 for an address that nobody knows."""

    def read(self, content):
        if isinstance(content, dict) and "error" in content:
            return None
        return super().read(content)


@breaks("test_an_unreachable_server_is_temporary")
class Hopeful(Failing):
    def failed(self, error):
        if isinstance(error, TryLater) and error.status is None and not error.response:
            raise Broken(str(error)) from error
        raise error


@breaks("test_no_secret_is_in_a_url")
class Careless(Reputation):
    def path(self, value):
        return f"{super().path(value)}?key={quote(self.headers['Key'])}"


@breaks("test_check_without_problems", "test_check_raises_for_failures")
class Unchecked(Reputation):
    async def check(self):
        return None


@breaks("test_check_raises_for_failures")
class Optimist(Reputation):
    async def check(self):
        return Health(detail="it is there")


@breaks("test_the_event_loop_is_not_blocked")
class BlocksAfterItWasAsked(Reputation):
    _was_asked = False

    async def enrich(self, entities):
        self._was_asked = True
        return await super().enrich(entities)

    async def check(self):
        time.sleep(0.3 if self._was_asked else 0)  # noqa: ASYNC251
        return await super().check()


class EnvelopeConformance(ReputationConformance):
    """A source that reports errors with status 200."""

    def refuse(self, refusal):
        return web.json_response({"error": {"code": refusal.status, "message": refusal.reason}})


class Envelope(Reputation):
    """Sees the status of an error in the body."""

    async def check(self):
        answer = await self.api.request("GET", "/status", headers=self.headers)
        self.expect_no_error(answer.json)
        return Health(detail="it answers")

    def read(self, content):
        if self.expect_no_error(content) == 404:
            return None
        return super().read(content)

    def expect_no_error(self, content):
        """Return the status of an error that only means that the address is not known."""
        match content:
            case {"error": {"code": 404}}:
                return 404
            case {"error": {"code": 401, "message": str(message)}}:
                raise CredentialsRefused(message)
            case {"error": {"code": 429, "message": str(message)}}:
                raise TryLater(message, throttled=True)
            case {"error": error}:
                raise Broken(json.dumps(error))
        return None
