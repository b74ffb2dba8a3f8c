"""Write-back: what an investigation came to, as a comment to the incidents that it was about."""

from tocsin.investigations.write_backs.qualifying import (
    find_write_back_incidents,
    select_write_back_providers,
)
from tocsin.investigations.write_backs.records import (
    WriteBack,
    WriteBackState,
    list_write_backs,
    plan_write_backs,
)
from tocsin.investigations.write_backs.writing import WriteBackMetrics, WriteBackWorker

__all__ = [
    "WriteBack",
    "WriteBackMetrics",
    "WriteBackState",
    "WriteBackWorker",
    "find_write_back_incidents",
    "list_write_backs",
    "plan_write_backs",
    "select_write_back_providers",
]
