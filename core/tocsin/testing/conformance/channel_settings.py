"""Rules for channel settings and startup."""

from __future__ import annotations

from pydantic import ValidationError

from tocsin.testing.conformance.channel_harness import ChannelSuite
from tocsin.testing.conformance.rules import expect, rule
from tocsin.testing.conformance.settings import (
    expect_descriptions,
    expect_no_secret_shown,
    expect_raised,
    expect_secrets,
    forbid_io,
)


class ChannelSettingsRules(ChannelSuite):
    """Rules that need no receiver."""

    @rule
    async def test_an_unknown_setting_is_refused(self) -> None:
        """An unknown setting is rejected.

        Otherwise, a misspelled setting is silently ignored.
        """
        async with self.harness() as harness:
            with expect_raised(ValidationError, "the setting `x_unheard_of` was accepted"):
                harness.checked_settings(x_unheard_of=1)

    @rule
    async def test_every_setting_has_a_description(self) -> None:
        """Every setting of a channel has a description.

        When a setting is missing or wrong, operators see its description in the error message.
        """
        expect_descriptions(self.channel.Settings)

    @rule
    async def test_secrets_are_secret(self) -> None:
        """Secrets are annotated `SecretStr` and do not appear when the channel is printed.

        Otherwise, secrets appear in logs, tracebacks and the output of `tocsin plugins`.
        """
        expect_secrets(self.channel.Settings)
        async with self.harness() as harness:
            expect_no_secret_shown(harness.channel)

    @rule
    async def test_the_constructor_does_no_io(self) -> None:
        """A channel's constructor does not perform I/O.

        Tocsin also creates channels to check the configuration, possibly on machines without
        network access.
        """
        async with self.harness() as harness:
            settings, tools = harness.channel.settings, harness.channel.tools
            with forbid_io():
                self.channel(settings, tools)
            expect(not harness.http.count, "a request in the constructor")
