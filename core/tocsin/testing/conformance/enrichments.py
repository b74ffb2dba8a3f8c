"""Rules for the results of enrichers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields
from urllib.parse import parse_qsl, urlsplit

from tocsin.enrichment import sanitize_enrichments
from tocsin.errors import PluginFailure
from tocsin.model import Enrichment, Entity, Json
from tocsin.testing.conformance.enricher_harness import EnricherHarness, EnricherSuite
from tocsin.testing.conformance.record_shapes import change_texts, iter_paths, put_at
from tocsin.testing.conformance.rules import describe_error, does_not_apply, expect, rule

_MARK = "tocsin"
HOSTILE = (
    f"x?{_MARK}=1",
    f"x&{_MARK}=1#y",
    f"../../{_MARK}",
    f"x/../{_MARK}",
    f"%2e%2e%2f{_MARK}",
    f"http://example.com/../{_MARK}?{_MARK}=1",
    "a NUL \x00 inside",
    "two\nlines: and more",
    "'; DROP TABLE incidents; -- {{ 7 * 7 }} ${jndi:ldap://example.com/x} %s",
    "invoice\u202egnp.exe",
    "http://[::1]:x/",
    "xn--a",
    ".",
    "much" * 500,
)
"""Entity values that attackers might choose. A mark outside of a value shows an injection."""
_ODD: tuple[Json, ...] = (None, True, -1, 1e300, "", [], [[]], {"unexpected": []})
_LONG = " and much more" * 5_000


class EnrichmentRules(EnricherSuite):
    """Rules for the enrichments that an enricher returns."""

    @rule
    async def test_known_entities_have_a_summary(self) -> None:
        """Each known entity has an enrichment with a summary.

        Reports quote the summary without the other fields, so it must be understandable on its own.
        """
        async with self.harness() as harness:
            enrichments = await harness.ask(self.known)
            summarized = {
                enrichment.entity for enrichment in enrichments if enrichment.summary.strip()
            }
            silent = [entity.value for entity in self.known if entity not in summarized]
            expect(not silent, f"no summary for {', '.join(silent)}")

    @rule
    async def test_unknown_entities_have_no_enrichment(self) -> None:
        """There is no enrichment for an entity that the source does not know.

        Enrichments without information would fill reports and hide the useful ones.
        """
        if not self.unknown:
            does_not_apply("the source knows every entity")
        async with self.harness() as harness:
            enrichments = await harness.ask(self.unknown)
            expect(not enrichments, f"{enrichments!r:.300}")

    @rule
    async def test_results_are_in_the_requested_order(self) -> None:
        """The enricher returns at most one enrichment for each requested entity, and none for
        others, in the order of the request.

        Tocsin discards all other enrichments. A replay must get the enrichments in the same order.
        """
        async with self.harness() as harness:
            for requested in (self._mixed, self._mixed[::-1]):
                batch = requested[: harness.enricher.batch]
                received = [
                    enrichment.entity for enrichment in await harness.enricher.enrich(batch)
                ]
                wanted = [entity for entity in batch if entity in received]
                expect(
                    received == wanted, f"requested {_values(batch)}, received {_values(received)}"
                )

    @rule
    async def test_the_same_request_has_the_same_result(self) -> None:
        """The same request returns the same result, even after a restart.

        Tocsin caches results and repeats investigations. If results varied, each repetition would
        look like a change.
        """
        async with self.harness() as harness:
            first, again = await harness.ask(self.known), await harness.ask(self.known)
            expect(first == again, f"first {first!r:.200}, then {again!r:.200}")
            harness.enricher = await harness.open()
            restarted = await harness.ask(self.known)
            expect(first == restarted, f"first {first!r:.200}, then {restarted!r:.200}")

    @rule
    async def test_results_do_not_depend_on_the_batch(self) -> None:
        """The enrichment of an entity does not depend on the other entities in the batch.

        Tocsin asks about several entities at once and leaves out those whose results are cached.
        """
        async with self.harness() as harness:
            alone = [
                enrichment for entity in self._mixed for enrichment in await harness.ask([entity])
            ]
            together = await harness.ask(self._mixed)
            expect(alone == together, f"alone {alone!r:.200}, together {together!r:.200}")

    @rule
    async def test_results_are_within_limits(self) -> None:
        """Whatever the source returns, strings are within Tocsin's limits, scores are from 0 to
        100, techniques are valid IDs, and links are web links.

        Otherwise, Tocsin truncates the strings, limits the scores and drops invalid
        techniques and links.
        """
        async with self.harness() as harness:
            _expect_kept(await harness.ask(self.known))
            harness.alter = change_texts(lambda text: text + _LONG)
            for entity in self.known:
                enrichments = list[Enrichment]()
                if await harness.failure(_gather(harness, entity, enrichments)) is None:
                    _expect_kept(enrichments)

    @rule
    async def test_hostile_values_are_data(self) -> None:
        """An entity's value never changes the structure of a request.

        Attackers can choose domains and names. Escape these values, or pass them as parameters.
        """
        kinds = sorted(self.enricher.kinds)
        async with self.harness() as harness:
            for entity in (Entity(kind, value) for kind in kinds for value in HOSTILE):
                error = await harness.failure(harness.ask([entity]))
                sound = error is None or isinstance(error, PluginFailure)
                expect(sound, f"{describe_error(error)} for the {entity.kind} {entity.value!r:.80}")
            for request in harness.requests:
                seen = f"{request.method} {request.raw_path:.200}"
                expect(_MARK not in _normalize(request.raw_path), seen)

    @rule
    async def test_a_member_of_another_type_is_handled(self) -> None:
        """If a response member has an unexpected type, the enricher ignores it or raises `Broken`.

        Vendors change types between versions. Tocsin logs any other exception as a bug in the
        enricher.
        """
        async with self.served_harness() as harness:
            await harness.ask(self.known)
            for place, alter in list(_alterations(harness.answers)):
                harness.alter = alter
                error = await harness.failure(harness.ask(self.known[:1]))
                sound = error is None or isinstance(error, PluginFailure)
                expect(sound, f"{describe_error(error)} with {place}")

    @property
    def _mixed(self) -> list[Entity]:
        """The known entities, with unknown ones among them."""
        first, *others = self.known
        return [first, *self.unknown, *others]


async def _gather(harness: EnricherHarness, entity: Entity, into: list[Enrichment]) -> None:
    into += await harness.ask([entity])


def _expect_kept(enrichments: list[Enrichment]) -> None:
    for enrichment in enrichments:
        kept = sanitize_enrichments([enrichment], [enrichment.entity])[enrichment.entity]
        changed = [
            part.name
            for part in fields(enrichment)
            if _part_text(enrichment, part.name) != _part_text(kept, part.name)
        ]
        parts = ", ".join(f"`{name}`: {_part_text(enrichment, name)!r:.120}" for name in changed)
        expect(not changed, f"Tocsin would change {parts}")


def _part_text(enrichment: Enrichment | None, name: str) -> object:
    return getattr(enrichment, name)


def _values(entities: list[Entity]) -> str:
    return ", ".join(entity.value for entity in entities) or "nothing"


def _normalize(raw_path: str) -> set[str]:
    """Return the path segments and parameter names of a request."""
    parts = urlsplit(raw_path)
    return {*parts.path.split("/"), *(name for name, _ in parse_qsl(parts.query))}


def _alterations(answers: list[Json]) -> Iterator[tuple[str, Callable[[Json], Json]]]:
    places = dict.fromkeys(path for answer in answers for path in iter_paths(answer))
    for odd in _ODD:
        yield f"{odd!r} as the response", _always(odd)
        for path in places:
            where = ".".join(map(str, path))
            yield f"{odd!r} at {where}", put_at([path], _always(odd))


def _always(value: Json) -> Callable[[Json], Json]:
    return lambda _: value
