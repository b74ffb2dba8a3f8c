"""Planning the comments that a run leaves at the incidents that it was asked about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, select

from tocsin.hookspecs import Provider
from tocsin.investigations.running.ending import FinishedRun, Finisher
from tocsin.investigations.sessions.reads import session_url
from tocsin.investigations.write_backs.qualifying import (
    find_write_back_incidents,
    select_write_back_providers,
)
from tocsin.investigations.write_backs.records import plan_write_backs
from tocsin.model import Report
from tocsin.reports import to_short_text, to_text
from tocsin.store.tables import incidents


def build_write_back_finisher(providers: Mapping[str, Provider], public_url: str) -> Finisher:
    """Return what plans a comment for each incident that was asked about by number and examined.

    Only for providers whose operator wants that. Those that an investigation came upon by itself
    are left alone: there may be many, and nobody has asked about them. A SIEM is told nothing of
    what others know: where anything came from another provider, it is told the verdict alone.
    """
    wanted = select_write_back_providers(providers)

    def tell(connection: Connection, ended: FinishedRun) -> None:
        report = ended.report
        if report is None or not wanted:
            return
        about = [number for number in report.about if number in report.incidents]
        involved = ended.named.keys() | _providers(connection, report.incidents)
        url = session_url(public_url, ended.session_id)
        for number, provider, external_id in find_write_back_incidents(connection, about, wanted):
            plan_write_backs(
                connection,
                session_id=ended.session_id,
                run=ended.run,
                text=_comment_text(report, url, involved - {provider}),
                incidents=[(number, provider, external_id)],
                now=ended.at,
            )

    return tell


def _providers(connection: Connection, numbers: Sequence[int]) -> set[str]:
    query = select(incidents.c.provider).where(incidents.c.number.in_(numbers)).distinct()
    return set(connection.execute(query).scalars())


def _comment_text(report: Report, url: str, others: set[str]) -> str:
    return to_short_text(report, url) if others else to_text(report)
