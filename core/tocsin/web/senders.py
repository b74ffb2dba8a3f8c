"""Who may push: the provider judges, and guessing at it is limited by address, as everywhere."""

from __future__ import annotations

from aiohttp import hdrs, web

from tocsin.clock import Clock
from tocsin.credentials import VerificationCache
from tocsin.errors import CallerError
from tocsin.web.addresses import ClientAddresses
from tocsin.web.throttle import ApiRateLimits

PUSH_CHALLENGE = 'Bearer realm="tocsin", Basic realm="tocsin"'
PUSH_REFUSED = "The request does not prove that it may push here."


class PushAuthentication:
    """Lets senders try as often as their address may fail.

    Neither who was let in lately waits for others behind the same address, nor who sends nothing
    in `Authorization`: a signature's key is too long to be guessed.
    """

    def __init__(self, throttle: ApiRateLimits, addresses: ClientAddresses, clock: Clock) -> None:
        self._throttle = throttle
        self._addresses = addresses
        self._let_in: VerificationCache[bool] = VerificationCache(clock)

    async def judge(self, request: web.Request, provider: str) -> None:
        """Return where the sender may try; CallerError (429) where its address failed too often."""
        address = self._addresses.of(request)
        if self._throttle.is_failing(address) and self._is_guess(request, provider):
            await self._throttle.count_failure(address)

    def let_in(self, request: web.Request, provider: str) -> None:
        """Remember that the provider took what was sent."""
        if hdrs.AUTHORIZATION in request.headers:
            self._let_in.add(self._digest(request, provider), fact=True)

    async def refuse(self, request: web.Request) -> CallerError:
        """Return the error (401) for a sender that its provider does not know, and count it.

        CallerError (429) where that is one failure too many.
        """
        await self._throttle.count_failure(self._addresses.of(request))
        return CallerError(401, PUSH_REFUSED, headers={"WWW-Authenticate": PUSH_CHALLENGE})

    def _is_guess(self, request: web.Request, provider: str) -> bool:
        if hdrs.AUTHORIZATION not in request.headers:
            return False
        return self._let_in.recall(self._digest(request, provider)) is None

    def _digest(self, request: web.Request, provider: str) -> bytes:
        return self._let_in.digest(provider, request.headers[hdrs.AUTHORIZATION])
