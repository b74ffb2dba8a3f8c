"""Rules for enrichment answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields
from urllib.parse import parse_qsl, urlsplit

from tocsin.enrichment.sanitizer import sanitize_enrichments
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
"""Values of entities: attackers choose them. Whatever has the mark was taken for more than data."""
_ODD: tuple[Json, ...] = (None, True, -1, 1e300, "", [], [[]], {"unexpected": []})
_LONG = " and much more" * 5_000


class EnrichmentRules(EnricherSuite):
    """What comes of asking."""

    @rule
    async def test_what_is_known_is_said(self) -> None:
        """Of each entity that something is known of, a sentence is said.

        The sentence is what stands in the report; the rest is detail.
        """
        async with self.harness() as lab:
            said = await lab.ask(self.known)
            told = {it.entity for it in said if it.summary.strip()}
            silent = [entity.value for entity in self.known if entity not in told]
            expect(not silent, f"nothing is said of {', '.join(silent)}")

    @rule
    async def test_of_the_unknown_nothing_is_said(self) -> None:
        """Of what nothing is known of, nothing is returned.

        An enrichment that says "unknown" stands in every report, and hides those that say more.
        """
        if not self.unknown:
            does_not_apply("something is known of everything")
        async with self.harness() as lab:
            said = await lab.ask(self.unknown)
            expect(not said, f"{said!r:.300}")

    @rule
    async def test_answers_are_in_the_order_of_the_question(self) -> None:
        """Only what was asked for is answered, once each, in the order of the question.

        What is said of others is not kept, and the ledger of a replay has the same order.
        """
        async with self.harness() as lab:
            for asked in (self._mixed, self._mixed[::-1]):
                batch = asked[: lab.enricher.batch]
                told = [it.entity for it in await lab.enricher.enrich(batch)]
                wanted = [entity for entity in batch if entity in told]
                expect(told == wanted, f"asked for {_values(batch)}, it answers {_values(told)}")

    @rule
    async def test_the_same_question_has_the_same_answer(self) -> None:
        """Asked again, and after a restart, it says the same.

        Answers are kept and reports repeated: one that changes by itself is news each time.
        """
        async with self.harness() as lab:
            first, again = await lab.ask(self.known), await lab.ask(self.known)
            expect(first == again, f"first {first!r:.200}, then {again!r:.200}")
            lab.enricher = await lab.open()
            restarted = await lab.ask(self.known)
            expect(first == restarted, f"first {first!r:.200}, then {restarted!r:.200}")

    @rule
    async def test_what_is_said_of_one_does_not_depend_on_the_others(self) -> None:
        """Of an entity the same is said whether it is asked for alone or with others.

        The core asks for several at once, and leaves out those that it has an answer of.
        """
        async with self.harness() as lab:
            alone = [it for entity in self._mixed for it in await lab.ask([entity])]
            together = await lab.ask(self._mixed)
            expect(alone == together, f"alone {alone!r:.200}, together {together!r:.200}")

    @rule
    async def test_what_is_said_is_kept_as_it_is(self) -> None:
        """Texts are cut, scores are from 0 to 100, links are of the web, also if the source's not.

        The core cuts what is longer, wherever that is, and drops what is no technique or link.
        """
        async with self.harness() as lab:
            _expect_kept(await lab.ask(self.known))
            lab.alter = change_texts(lambda text: text + _LONG)
            for entity in self.known:
                said = list[Enrichment]()
                if await lab.failure(_gather(lab, entity, said)) is None:
                    _expect_kept(said)

    @rule
    async def test_hostile_values_are_data(self) -> None:
        """An entity's value never becomes more of a request than a value.

        Attackers choose domains, addresses and names: quote them, or hand them over as parameters.
        """
        kinds = sorted(self.enricher.kinds)
        async with self.harness() as lab:
            for entity in (Entity(kind, value) for kind in kinds for value in HOSTILE):
                error = await lab.failure(lab.ask([entity]))
                sound = error is None or isinstance(error, PluginFailure)
                expect(sound, f"{describe_error(error)} for the {entity.kind} {entity.value!r:.80}")
            for request in lab.requests:
                seen = f"{request.method} {request.raw_path:.200}"
                expect(_MARK not in _normalize(request.raw_path), seen)

    @rule
    async def test_a_member_of_another_type_is_no_bug(self) -> None:
        """Whatever type a member of the answer has, it is passed over, or `Broken` is raised.

        Vendors change types between versions; a bug is recorded with its traceback each time.
        """
        async with self.served_harness() as lab:
            await lab.ask(self.known)
            for place, alter in list(_alterations(lab.answers)):
                lab.alter = alter
                error = await lab.failure(lab.ask(self.known[:1]))
                sound = error is None or isinstance(error, PluginFailure)
                expect(sound, f"{describe_error(error)} with {place}")

    @property
    def _mixed(self) -> list[Entity]:
        """What is known, and among it what is not."""
        first, *others = self.known
        return [first, *self.unknown, *others]


async def _gather(lab: EnricherHarness, entity: Entity, into: list[Enrichment]) -> None:
    into += await lab.ask([entity])


def _expect_kept(said: list[Enrichment]) -> None:
    for it in said:
        kept = sanitize_enrichments([it], [it.entity])[it.entity]
        changed = [
            part.name
            for part in fields(it)
            if _part_text(it, part.name) != _part_text(kept, part.name)
        ]
        parts = ", ".join(f"`{name}`: {_part_text(it, name)!r:.120}" for name in changed)
        expect(not changed, f"what would be kept otherwise: {parts}")


def _part_text(enrichment: Enrichment | None, name: str) -> object:
    return getattr(enrichment, name)


def _values(entities: list[Entity]) -> str:
    return ", ".join(entity.value for entity in entities) or "nothing"


def _normalize(raw_path: str) -> set[str]:
    """Return the segments of the path of a request, and the names of its parameters."""
    parts = urlsplit(raw_path)
    return {*parts.path.split("/"), *(name for name, _ in parse_qsl(parts.query))}


def _alterations(answers: list[Json]) -> Iterator[tuple[str, Callable[[Json], Json]]]:
    places = dict.fromkeys(path for answer in answers for path in iter_paths(answer))
    for odd in _ODD:
        yield f"{odd!r} for an answer", _always(odd)
        for path in places:
            where = ".".join(map(str, path))
            yield f"{odd!r} at {where}", put_at([path], _always(odd))


def _always(value: Json) -> Callable[[Json], Json]:
    return lambda _: value
