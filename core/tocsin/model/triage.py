"""Words of the triage of incidents."""

from __future__ import annotations

from tocsin.model.vocabulary import Vocabulary


class IncidentDisposition(Vocabulary):
    """The result of an incident's triage."""

    TRUE_POSITIVE = "true-positive"
    BENIGN_TRUE_POSITIVE = "benign-true-positive"
    FALSE_POSITIVE = "false-positive"
    DUPLICATE = "duplicate"
    UNDETERMINED = "undetermined"


class MessageButton(Vocabulary):
    """A button in a chat message with which people triage an incident."""

    ACKNOWLEDGE = "acknowledge"
    ASSIGN = "assign"
    """Assigns the incident to the person who presses the button."""
    TRUE_POSITIVE = IncidentDisposition.TRUE_POSITIVE.value
    BENIGN_TRUE_POSITIVE = IncidentDisposition.BENIGN_TRUE_POSITIVE.value
    FALSE_POSITIVE = IncidentDisposition.FALSE_POSITIVE.value
    DUPLICATE = IncidentDisposition.DUPLICATE.value
    UNDETERMINED = IncidentDisposition.UNDETERMINED.value

    @property
    def disposition(self) -> IncidentDisposition | None:
        """The disposition that the button sets; None if it does not set one."""
        if self in {MessageButton.ACKNOWLEDGE, MessageButton.ASSIGN}:
            return None
        return IncidentDisposition(self.value)


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
