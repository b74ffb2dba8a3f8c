"""Words of the triage of incidents."""

from __future__ import annotations

from tocsin.model.vocabulary import Vocabulary


class IncidentDisposition(Vocabulary):
    """Result of the triage of an incident."""

    TRUE_POSITIVE = "true-positive"
    BENIGN_TRUE_POSITIVE = "benign-true-positive"
    FALSE_POSITIVE = "false-positive"
    DUPLICATE = "duplicate"
    UNDETERMINED = "undetermined"


class DispositionFilter(Vocabulary):
    """Disposition in a filter."""

    TRUE_POSITIVE = IncidentDisposition.TRUE_POSITIVE.value
    BENIGN_TRUE_POSITIVE = IncidentDisposition.BENIGN_TRUE_POSITIVE.value
    FALSE_POSITIVE = IncidentDisposition.FALSE_POSITIVE.value
    DUPLICATE = IncidentDisposition.DUPLICATE.value
    UNDETERMINED = IncidentDisposition.UNDETERMINED.value
    NONE = "none"


class DispositionSource(Vocabulary):
    """Origin of a disposition."""

    PERSON = "person"
    RULE = "rule"
    PLAYBOOK = "playbook"
    SIEM = "siem"
    TICKET = "ticket"
