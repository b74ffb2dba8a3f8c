"""Who lives through a day; to enter another, derive from `Entrant` and name it here."""

from __future__ import annotations

from truth.console import OfQRadar
from truth.datadog import OfDatadog
from truth.entrant import Entrant
from truth.exabeam import OfExabeam
from truth.falcon import OfFalcon
from truth.graylog import OfGraylog
from truth.insightidr import OfInsightIDR
from truth.kibana import AlertsAndCases
from truth.local_api import LocalApi
from truth.microsoft import OfDefender, OfDefenderAlerts, OfSentinel
from truth.of_files import EcsFiles, FalcoFiles, OcsfFiles, SuricataFiles, ZeekFiles
from truth.of_simulators import Example
from truth.pushing import Pushed
from truth.search_head import OfSplunk
from truth.secops import OfSecOps
from truth.security_analytics import Analytics
from truth.wazuh_indexer import Indexer

ENTRANTS: tuple[type[Entrant], ...] = (
    Example,
    LocalApi,
    OcsfFiles,
    SuricataFiles,
    ZeekFiles,
    FalcoFiles,
    EcsFiles,
    Pushed,
    OfDefender,
    OfDefenderAlerts,
    OfSentinel,
    OfSplunk,
    AlertsAndCases,
    Analytics,
    Indexer,
    OfFalcon,
    OfDatadog,
    OfExabeam,
    OfGraylog,
    OfInsightIDR,
    OfSecOps,
    OfQRadar,
)
