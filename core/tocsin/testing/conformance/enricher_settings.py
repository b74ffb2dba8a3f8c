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
    """Rules that need no requests."""

    @rule
    async def test_name_kinds_and_batch_are_declared(self) -> None:
        """An enricher declares a name, entity kinds and a batch size of at least one.

        Tocsin uses these values for queries and shows the name in reports and ledgers.
        """
        kind = self.enricher
        expect(getattr(kind, "name", ""), "no name")
        kinds = getattr(kind, "kinds", ())
        expect(kinds and set(kinds) <= set(EntityKind), f"the kinds {kinds!r}")
        expect(kind.batch >= 1, f"a batch of {kind.batch}")
        required = [
            name for name, field in kind.Settings.model_fields.items() if field.is_required()
        ]
        unset = not kind.standing or required == ["plugin"]
        expect(unset, f"a `standing` enricher must not require {', '.join(required)}")

    @rule
    async def test_every_setting_has_a_description(self) -> None:
        """Every setting of an enricher has a description.

        When a setting is missing or wrong, operators see its description in the error message.
        """
        expect_descriptions(self.enricher.Settings)

    @rule
    async def test_secrets_are_secret(self) -> None:
        """Secrets are annotated `SecretStr` and do not appear when the enricher is printed.

        Otherwise, secrets appear in logs, tracebacks and the output of `tocsin plugins`.
        """
        expect_secrets(self.enricher.Settings)
        async with self.harness() as harness:
            expect_no_secret_shown(harness.enricher)

    @rule
    async def test_the_constructor_does_no_io(self) -> None:
        """An enricher's constructor does not perform I/O.

        Tocsin also creates enrichers to check the configuration, possibly on machines without
        network access.
        """
        async with self.harness() as harness:
            settings, tools = harness.checked_settings(), harness.tools
            self.enricher(settings, tools)  # the first call may import modules
            with forbid_io():
                self.enricher(settings, tools)
            expect(not harness.http.count, "a request in the constructor")
