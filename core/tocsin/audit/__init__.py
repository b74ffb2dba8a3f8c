"""The audit log: what was done and what was refused, chained so that changes are noticed."""

from tocsin.audit.chain import SEAL
from tocsin.audit.log import AuditPage, AuditRecord, list_entries, record
from tocsin.audit.refusals import Refusals
from tocsin.audit.sealing import Sealer
from tocsin.audit.verifying import AuditVerification, verify

__all__ = [
    "SEAL",
    "AuditPage",
    "AuditRecord",
    "AuditVerification",
    "Refusals",
    "Sealer",
    "list_entries",
    "record",
    "verify",
]
