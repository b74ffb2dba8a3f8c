"""Rules for enricher settings and declarations."""

from __future__ import annotations

from tocsin.model import EntityKind
from tocsin.testing.conformance.enricher_harness import EnricherSuite
from tocsin.testing.conformance.rules import expect, rule
from tocsin.testing.conformance.settings import (
    expect_descriptions,
    expect_no_secret_shown,
    expect_secrets,
    forbid_io,
)


class EnricherSettingsRules(EnricherSuite):
    """What can be told without asking for anything."""

    @rule
    async def test_it_says_what_it_can_be_asked_for(self) -> None:
        """An enricher has a name, kinds of entity, and a batch of one or more.

        It is asked for nothing else, and its name is what reports and ledgers cite.
        """
        kind = self.enricher
        expect(getattr(kind, "name", ""), "no name")
        kinds = getattr(kind, "kinds", ())
        expect(kinds and set(kinds) <= set(EntityKind), f"the kinds {kinds!r}")
        expect(kind.batch >= 1, f"a batch of {kind.batch}")
        required = [name for name, it in kind.Settings.model_fields.items() if it.is_required()]
        unset = not kind.standing or required == ["plugin"]
        expect(unset, f"it is standing, and cannot do without {', '.join(required)}")

    @rule
    async def test_every_setting_has_a_description(self) -> None:
        """Every setting of an enricher has a description.

        It is all that an operator is shown who left the setting out or got it wrong.
        """
        expect_descriptions(self.enricher.Settings)

    @rule
    async def test_secrets_are_secret(self) -> None:
        """A secret is annotated `SecretStr`, and is not printed with the enricher.

        Plain text ends in logs, tracebacks and the output of `tocsin plugins`.
        """
        expect_secrets(self.enricher.Settings)
        async with self.harness() as lab:
            expect_no_secret_shown(lab.enricher)

    @rule
    async def test_nothing_is_done_before_the_start(self) -> None:
        """An enricher is made without any input or output.

        Whoever only judges a configuration makes one, perhaps where nothing can be reached.
        """
        async with self.harness() as lab:
            settings, tools = lab.checked_settings(), lab.tools
            self.enricher(settings, tools)  # which may import what it needs
            with forbid_io():
                self.enricher(settings, tools)
            expect(not lab.http.count, "a request in the constructor")
