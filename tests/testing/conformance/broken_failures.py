"""Providers with broken failure handling."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from http import HTTPStatus

from broken import NOTHING, Answers, Lists, breaks
from tocsin_example.provider import ExampleProvider

from tocsin import (
    Broken,
    CredentialsRefused,
    Grant,
    Health,
    PluginFailure,
    Refused,
    TryLater,
)

EMPTY = b'{"cases": [], "next_page_token": null}'


class Retries(Answers):
    """Does not see some Retry-After."""

    status = HTTPStatus.TOO_MANY_REQUESTS
    dates = False

    def take(self, response):
        value = response.headers.get("Retry-After", "")
        if response.status != self.status or not value or value.isdigit() is self.dates:
            return response
        return replace(response, headers={})


@breaks("test_throttling_for_seconds_is_waited_out")
class SeesNoSeconds(Retries):
    pass


@breaks("test_throttling_until_a_date_is_waited_out")
class SeesNoDate(Retries):
    dates = True


@breaks("test_maintenance_is_waited_out")
class SeesNoMaintenance(Retries):
    status = HTTPStatus.SERVICE_UNAVAILABLE


class Swallowing(Lists):
    """Takes some failures for an empty list."""

    def swallows(self, error):
        return False

    async def listed(self, ask, window, token):
        try:
            return await ask()
        except PluginFailure as error:
            if not self.swallows(error):
                raise
            return NOTHING


@breaks("test_a_bad_gateway_is_temporary")
class SwallowsBadGateways(Swallowing):
    def swallows(self, error):
        return getattr(error, "status", None) == HTTPStatus.BAD_GATEWAY


@breaks("test_reading_recovers_from_server_errors")
class SwallowsErrors(Swallowing):
    def swallows(self, error):
        return "returned 500" in str(error) and "cannot be rendered" not in str(error)


@breaks("test_a_broken_connection_is_temporary")
class SwallowsCuts(Swallowing):
    """On the first page of a list; a later one is another rule's."""

    _resumes = False

    def swallows(self, error):
        return "connection reset" in str(error) and not self._resumes

    async def listed(self, ask, window, token):
        self._resumes = token is not None
        return await super().listed(ask, window, token)


@breaks("test_an_unreachable_siem_is_temporary")
class SwallowsAbsence(Swallowing):
    def swallows(self, error):
        return "cannot connect" in str(error)


@breaks("test_a_missing_permission_is_refused")
class WaitsForPermission(Lists):
    async def listed(self, ask, window, token):
        try:
            return await ask()
        except CredentialsRefused as error:
            if error.status == HTTPStatus.FORBIDDEN:
                raise TryLater(str(error)) from None
            raise


@breaks("test_a_login_page_is_an_error")
class ReadsALoginPage(Answers):
    def take(self, response):
        is_page = response.status == HTTPStatus.OK and response.body.startswith(b"<!doctype")
        return replace(response, body=EMPTY) if is_page else response


@breaks("test_a_partial_response_is_an_error")
class ReadsAPart(Answers):
    def take(self, response):
        is_part = response.status == HTTPStatus.PARTIAL_CONTENT
        return replace(response, status=200) if is_part else response


@breaks("test_truncated_json_is_an_error")
class ReadsHalfOfJson(Answers):
    def take(self, response):
        if not response.body.startswith(b"{"):
            return response
        try:
            json.loads(response.body)
        except ValueError:
            return replace(response, body=EMPTY)
        return response


@breaks("test_an_empty_body_is_an_error")
class ReadsNothing(Answers):
    def take(self, response):
        is_empty = response.status == HTTPStatus.OK and not response.body
        return replace(response, body=EMPTY) if is_empty else response


@breaks("test_a_missing_member_is_not_an_empty_list")
class ReadsWhatIsMissing(Answers):
    def take(self, response):
        is_bare = response.status == HTTPStatus.OK and response.body == b"{}"
        return replace(response, body=EMPTY) if is_bare else response


@breaks("test_an_error_with_status_200_is_not_an_empty_list")
class ReadsAnErrorAsNothing(Answers):
    def take(self, response):
        is_error = response.status == HTTPStatus.OK and response.body.startswith(b'{"error"')
        return replace(response, body=EMPTY) if is_error else response


@breaks("test_a_throttled_siem_is_read_to_the_end")
class BeginsAnewWhenThrottled(Lists):
    _throttled = False

    async def listed(self, ask, window, token):
        if token is not None and self._throttled:
            self._throttled = False
            raise Refused("begin anew")
        try:
            return await ask()
        except TryLater as error:
            self._throttled = error.status == HTTPStatus.TOO_MANY_REQUESTS
            raise


@breaks("test_a_failing_siem_gets_few_requests")
class Hammers(Lists):
    _failed = False

    async def listed(self, ask, window, token):
        for _ in range(100 if self._failed else 0):
            with suppress(Broken):
                return await ask()
        try:
            return await ask()
        except Broken as error:
            self._failed = str(error).endswith("returned 500: {}")
            raise


# sessions and credentials


@breaks("test_a_revoked_session_is_replaced")
class GivesUpItsSession(Answers):
    def take(self, response):
        ended = response.status == HTTPStatus.UNAUTHORIZED and b"session" in response.body
        return replace(response, status=403) if ended else response


class Signing(ExampleProvider):
    """Signs in otherwise: override `sign_in`."""

    async def _sign_in(self):
        return await self.sign_in()

    async def sign_in(self):
        return await ExampleProvider._sign_in(self)


@breaks("test_a_session_is_renewed_before_it_ends")
class WaitsForTheEnd(Signing):
    async def sign_in(self):
        return Grant((await super().sign_in()).authorization)


@breaks(
    "test_a_failed_sign_in_is_temporary",
    "test_a_failed_comment_raises",
    "test_an_unreachable_siem_fails_event_searches",
)
class BlamesTheCredentials(Signing):
    async def sign_in(self):
        try:
            return await super().sign_in()
        except TryLater as error:
            raise CredentialsRefused(str(error)) from None


@breaks("test_wrong_credentials_are_refused")
class BlamesTheServer(Signing):
    async def sign_in(self):
        try:
            return await super().sign_in()
        except CredentialsRefused as error:
            raise TryLater(str(error)) from None


@breaks("test_wrong_credentials_are_refused")
class TriesTheDoor(Signing):
    async def sign_in(self):
        for _ in range(20):
            with suppress(CredentialsRefused):
                return await super().sign_in()
        return await super().sign_in()


@breaks("test_no_secret_is_exposed")
class LogsItsSecret(Signing):
    async def sign_in(self):
        secret = self.settings.client_secret.get_secret_value()
        self.tools.log.info("signing in", client_secret=secret)
        return await super().sign_in()


# check


@breaks("test_check_without_problems")
class AlwaysHasAnAdvice(ExampleProvider):
    async def check(self):
        health = await super().check()
        return replace(health, problems=("change the secret once a year",))


class Optimist(ExampleProvider):
    """Says that all is well, whatever `hides` is true of."""

    def hides(self, error):
        return False

    async def check(self):
        try:
            return await super().check()
        except PluginFailure as error:
            if self.hides(error):
                return Health(detail="all is well")
            raise


@breaks("test_check_reports_wrong_credentials")
class HidesWrongCredentials(Optimist):
    def hides(self, error):
        return getattr(error, "status", None) == HTTPStatus.UNAUTHORIZED


@breaks("test_check_reports_a_missing_permission")
class HidesMissingPermissions(Optimist):
    def hides(self, error):
        return getattr(error, "status", None) == HTTPStatus.FORBIDDEN


@breaks("test_check_reports_an_unreachable_siem")
class HidesAbsence(Optimist):
    def hides(self, error):
        return isinstance(error, TryLater)
