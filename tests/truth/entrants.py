"""Who lives through a day; to enter another, derive from `Entrant` and name it here."""

from __future__ import annotations

from truth.entrant import Entrant
from truth.local_api import LocalApi
from truth.of_files import OcsfFiles, SuricataFiles
from truth.of_simulators import Example
from truth.pushing import Pushed

ENTRANTS: tuple[type[Entrant], ...] = (Example, LocalApi, OcsfFiles, SuricataFiles, Pushed)
