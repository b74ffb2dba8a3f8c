"""Which incidents are told what an investigation came to."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from sqlalchemy import Connection, select

from tocsin.hookspecs import Capability, Provider
from tocsin.model import IncidentStatus
from tocsin.store.tables import incidents


def select_write_back_providers(providers: Mapping[str, Provider]) -> Mapping[str, Provider]:
    """Return the providers whose operator wants comments, and whose plugin can write them.

    Where it can write none, those whose operator wants a status that it can set.
    """
    return {name: provider for name, provider in providers.items() if _wants_write_back(provider)}


def _wants_write_back(provider: Provider) -> bool:
    settings, able = provider.settings, provider.capabilities()
    if Capability.COMMENT in able:
        return bool(settings.write_back)
    return settings.write_back_status is not None and Capability.STATUS in able


def find_write_back_incidents(
    connection: Connection, numbers: Sequence[int], providers: Collection[str]
) -> Sequence[tuple[int, str, str]]:
    """Return number, provider and external id of those incidents that are of these providers."""
    if not numbers or not providers:
        return ()
    columns = (incidents.c.number, incidents.c.provider, incidents.c.external_id)
    query = (
        select(*columns)
        .where(incidents.c.number.in_(numbers), incidents.c.provider.in_(providers))
        .order_by(incidents.c.number)
    )
    return [(number, provider, name) for number, provider, name in connection.execute(query)]


def is_incident_new(connection: Connection, number: int) -> bool:
    """Return whether an incident is New, as far as it was read."""
    query = select(incidents.c.status).where(incidents.c.number == number)
    return connection.scalar(query) == IncidentStatus.NEW
