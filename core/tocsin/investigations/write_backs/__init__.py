"""Write-back: results of an investigation as comments on the incidents that it was about."""

from tocsin.investigations.write_backs.repository import (
    WriteBack,
    WriteBackState,
    find_write_back_incidents,
    list_write_backs,
    plan_write_backs,
    select_write_back_providers,
)
from tocsin.investigations.write_backs.worker import WriteBackMetrics, WriteBackWorker

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
