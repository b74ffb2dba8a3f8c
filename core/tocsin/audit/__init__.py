"""The audit log: what was done and what was refused, chained so that changes are noticed."""

from tocsin.audit.chain import SEAL
from tocsin.audit.log import Entry, EntryPage, list_entries, record
from tocsin.audit.refusals import Refusals
from tocsin.audit.sealing import Sealer
from tocsin.audit.verifying import Verification, verify

__all__ = [
    "SEAL",
    "Entry",
    "EntryPage",
    "Refusals",
    "Sealer",
    "Verification",
    "list_entries",
    "record",
    "verify",
]
