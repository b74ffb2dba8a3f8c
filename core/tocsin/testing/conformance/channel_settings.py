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
    """What can be told without the receiver."""

    @rule
    async def test_an_unknown_setting_is_refused(self) -> None:
        """A setting that the channel does not have is refused.

        A misspelt setting that is passed over leaves the operator with what was not meant.
        """
        async with self.harness() as lab:
            with expect_raised(ValidationError, "a setting `x_unheard_of` was taken"):
                lab.checked_settings(x_unheard_of=1)

    @rule
    async def test_every_setting_has_a_description(self) -> None:
        """Every setting of a channel has a description.

        It is all that an operator is shown who left the setting out or got it wrong.
        """
        expect_descriptions(self.channel.Settings)

    @rule
    async def test_secrets_are_secret(self) -> None:
        """A secret is annotated `SecretStr`, and is not printed with the channel.

        Plain text ends in logs, tracebacks and the output of `tocsin plugins`.
        """
        expect_secrets(self.channel.Settings)
        async with self.harness() as lab:
            expect_no_secret_shown(lab.channel)

    @rule
    async def test_nothing_is_done_before_the_start(self) -> None:
        """A channel is made without any input or output.

        Whoever only judges a configuration makes one, perhaps where nothing can be reached.
        """
        async with self.harness() as lab:
            settings, tools = lab.channel.settings, lab.channel.tools
            with forbid_io():
                self.channel(settings, tools)
            expect(not lab.http.count, "a request in the constructor")
