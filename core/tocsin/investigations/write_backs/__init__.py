"""Write-back: what an investigation came to, as a comment to the incidents that it was about."""

from tocsin.investigations.write_backs.qualifying import incidents_to_tell, write_back_to
from tocsin.investigations.write_backs.records import (
    WriteBack,
    WriteBackState,
    list_write_backs,
    plan_write_backs,
)
from tocsin.investigations.write_backs.writing import WriteBackMeter, WriteBacks

__all__ = [
    "WriteBack",
    "WriteBackMeter",
    "WriteBackState",
    "WriteBacks",
    "incidents_to_tell",
    "list_write_backs",
    "plan_write_backs",
    "write_back_to",
]
