"""Whether a customer lets itself be read, searched and written to."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from http import HTTPStatus

from tocsin import Refused, Window
from tocsin_connectors.siem.crowdstrike.falcon import Falcon
from tocsin_connectors.siem.crowdstrike.searching import Searcher
from tocsin_connectors.siem.crowdstrike.walk import Step
from tocsin_connectors.siem.trying import Trying, refused

READ = "Alerts: Read"
WRITE = "Alerts: Write"
SEARCH = "NGSIEM: Read and Write"
_LATELY = timedelta(minutes=1)


async def problems(
    falcon: Falcon, searcher: Searcher | None, now: datetime, *, writes: bool
) -> list[str]:
    """Return which scopes the API client lacks, found out by trying; raises what else is wrong."""
    lately = Window(now - _LATELY, now)
    tried: dict[str, Trying] = {READ: partial(falcon.alerts, Step.first(lately), now, 1)}
    if searcher is not None:
        tried[SEARCH] = partial(searcher.run, "test(?value == ?value) | tail(1)", "tocsin", lately)
    if writes:
        tried[WRITE] = partial(_change_nothing, falcon)
    return [f"the API client lacks the scope {scope}" for scope in await refused(tried)]


async def _change_nothing(falcon: Falcon) -> None:
    """Ask for no change of no alert, which nobody does who may: it is refused with 400."""
    try:
        await falcon.change([], {})
    except Refused as error:
        if error.status != HTTPStatus.BAD_REQUEST:
            raise
