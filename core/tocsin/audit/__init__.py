"""Audit log: actions and refusals in a tamper-evident chain."""

from tocsin.audit.chain import SEAL, Sealer
from tocsin.audit.cuts import redact_entries, remove_entries
from tocsin.audit.log import AuditPage, AuditRecord, list_entries, record, record_local
from tocsin.audit.refusals import Refusals
from tocsin.audit.verification import AuditVerification, verify

__all__ = [
    "SEAL",
    "AuditPage",
    "AuditRecord",
    "AuditVerification",
    "Refusals",
    "Sealer",
    "list_entries",
    "record",
    "record_local",
    "redact_entries",
    "remove_entries",
    "verify",
]
